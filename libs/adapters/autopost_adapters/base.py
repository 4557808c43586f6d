"""The adapter contract: what a platform must bring to be one of ours.

``compile`` is pure and decides everything about what a channel will see; ``send`` carries out one part of a
plan and returns how it ended. An adapter never touches a database or a stream, and never raises for what a
platform does.
"""

from collections.abc import Callable
from typing import Any, Protocol

from autopost_contracts.outcomes import Failed
from autopost_contracts.payload import Content, Flags
from autopost_contracts.plan import Compiled, Part, Profile
from autopost_runtime.config import Secret
from autopost_runtime.http import HttpAnswer
from msgspec import Struct


class Target(Struct, frozen=True, kw_only=True):
    """Where a part goes and as whom; the address is the channel's, never the plan's."""

    chat: str
    token: Secret
    thread: int | None = None


class Accepted(Struct, frozen=True, kw_only=True):
    """The platform acknowledged the part under these ids."""

    provider_ids: tuple[str, ...]
    raw: dict[str, Any] = {}


Compile = Callable[[Content, Flags, Profile], Compiled]
"""A plan, or every problem that forbids one. Pure: the same input always gives the same plan."""


class Adapter(Protocol):
    @property
    def platform(self) -> str: ...

    async def send(self, part: Part, target: Target) -> Accepted | Failed:
        """Carry out one part: at most one message of the platform's per call."""


class Http(Protocol):
    """What an adapter needs of an HTTP client; ``NotSent`` and ``Unanswered`` are its only exceptions."""

    async def request(
        self, method: str, url: str, *, json: Any = ..., headers: Any = ..., timeout: Any, span_name: Any, template: Any
    ) -> HttpAnswer: ...
