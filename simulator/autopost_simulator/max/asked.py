"""A MAX request, read."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(slots=True, frozen=True)
class Asked:
    path: Mapping[str, str]
    query: Mapping[str, str]
    body: bytes

    def integer(self, name: str) -> int | None:
        try:
            return int(self.query[name])
        except (KeyError, ValueError):
            return None
