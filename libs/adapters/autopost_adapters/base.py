"""The adapter contract: what a platform must bring to be one of ours.

``compile`` is pure and decides everything about what a channel will see; ``send`` carries out one part of a
plan and returns how it ended. An adapter never touches a database or a stream, and never raises for what a
platform does, nor for bytes that cannot be had: those are outcomes as well.
"""

from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Protocol

from autopost_contracts.outcomes import Failed
from autopost_contracts.payload import Content, Flags
from autopost_contracts.plan import Compiled, Part, PlannedMedia, Profile
from autopost_runtime.config.load import Secret
from autopost_runtime.http.client import HttpAnswer
from autopost_runtime.http.request_body import StreamedBody
from msgspec import Struct


class Target(Struct, frozen=True, kw_only=True):
    """Where a part goes and as whom; the address is the channel's, never the plan's."""

    chat: str
    token: Secret
    thread: int | None = None


class MediaMissing(Exception):  # noqa: N818  named for what happened
    """The bytes are gone for good."""


class MediaUnreadable(Exception):  # noqa: N818  named for what happened
    """The bytes could not be read this time: the store is away, or gave something else than was stored."""


class Source(Protocol):
    """The bytes of one item, to be streamed. ``open`` and its iterator raise the two above and nothing else."""

    @property
    def size(self) -> int: ...

    @property
    def content_type(self) -> str: ...

    @property
    def name(self) -> str: ...

    def open(self) -> AsyncIterator[bytes]: ...


Material = str | Source
"""What a media item is sent from: the id under which the platform holds it already, or its bytes."""


class Held(Struct, frozen=True, kw_only=True):
    """The platform holds an item under this id, for this bot."""

    provider_id: str
    lifetime: timedelta | None = None
    """``None``: as far as we know for ever."""


class AcceptedPart(Struct, frozen=True, kw_only=True):
    """The platform acknowledged the part under these ids."""

    provider_ids: tuple[str, ...]
    held: tuple[Held | None, ...] = ()
    """For each media item of the part, in order: how to send it again without its bytes."""


Compile = Callable[[Content, Flags, Profile], Compiled]
"""A plan, or every problem that forbids one. Pure: the same input always gives the same plan."""


class Adapter(Protocol):
    @property
    def platform(self) -> str: ...

    @property
    def uploads_apart(self) -> bool:
        """Media goes up by ``upload``, before the message and in calls of its own; else ``send`` takes the bytes."""

    @property
    def can_find(self) -> bool:
        """The platform can be asked what a chat holds."""

    @property
    def patience(self) -> Mapping[str, Sequence[timedelta]]:
        """Failures, by code, that pass by themselves: how long to wait before each further call of the same part."""

    @property
    def identifies_by_call(self) -> bool:
        """``identify`` calls the platform, and needs a slot for it; else the token itself names its bot."""

    async def identify(self, token: Secret) -> str | Failed:
        """The bot behind a token: the same after the token was rotated."""

    async def send(self, part: Part, target: Target, media: Sequence[Material] = ()) -> AcceptedPart | Failed:
        """Carry out one part in one call; ``media`` has what each item is sent from, in order."""

    async def upload(self, item: PlannedMedia, source: Source, target: Target) -> Held | Failed:
        """Bring an item to the platform; only where ``uploads_apart``."""

    async def find(
        self, part: Part, target: Target, since: datetime, other_than: Collection[str]
    ) -> AcceptedPart | Failed | None:
        """The message that this part has become in the chat, ``None`` when there is none; only where ``can_find``."""


class Http(Protocol):
    """What an adapter needs of an HTTP client.

    ``NotSent`` and ``Unanswered`` are its only exceptions, but for what the source of a streamed body raises.
    """

    async def request(
        self,
        method: str,
        url: str,
        *,
        json: Any = ...,
        body: StreamedBody | None = ...,
        headers: Any = ...,
        timeout: timedelta,
        span_name: str,
        template: str,
    ) -> HttpAnswer: ...
