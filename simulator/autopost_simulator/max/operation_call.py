"""The call of a MAX operation: path, query and body."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(slots=True, frozen=True)
class OperationCall:
    """``origin`` is the URL by which the client reached this server; links in answers start with it."""

    path: Mapping[str, str]
    query: Mapping[str, str]
    body: bytes
    origin: str

    def integer(self, name: str) -> int | None:
        try:
            return int(self.query[name])
        except (KeyError, ValueError):
            return None
