"""The adapter contract: what the code of a platform must implement.

``compile`` is pure and decides everything that a channel shows; ``send`` sends one part of a plan and returns
the outcome. An adapter never uses a database or a stream. It never raises for a platform's behaviour, nor for
media bytes that are not available: those are outcomes as well.
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
    """The chat and the bot for a part. They come from the channel, never from the plan."""

    chat: str
    token: Secret
    thread: int | None = None


class MediaMissing(Exception):  # noqa: N818  named for what happened
    """The bytes are permanently lost."""


class MediaUnreadable(Exception):  # noqa: N818  named for what happened
    """The bytes could not be read this time: the store is unavailable, or returned other bytes than were stored."""


class Source(Protocol):
    """The bytes of one item, streamed. ``open`` and its iterator raise only the two exceptions above."""

    @property
    def size(self) -> int: ...

    @property
    def content_type(self) -> str: ...

    @property
    def name(self) -> str: ...

    def open(self) -> AsyncIterator[bytes]: ...


Material = str | Source
"""The source of a media item: the platform's id of an earlier upload, or its bytes."""


class Held(Struct, frozen=True, kw_only=True):
    """An upload: the platform stores the item under this id, for this bot."""

    provider_id: str
    lifetime: timedelta | None = None
    """``None``: no known expiry."""


class AcceptedPart(Struct, frozen=True, kw_only=True):
    """The platform accepted the part; these are its message ids."""

    provider_ids: tuple[str, ...]
    held: tuple[Held | None, ...] = ()
    """The upload of each media item of the part, in order, for sending it again without its bytes."""


Compile = Callable[[Content, Flags, Profile], Compiled]
"""A plan, or the problems that prevent one. Pure: the same input always gives the same plan."""


class Adapter(Protocol):
    @property
    def platform(self) -> str: ...

    @property
    def uploads_apart(self) -> bool:
        """Media is uploaded by ``upload``, in separate calls before the message; else ``send`` takes the bytes."""

    @property
    def can_find(self) -> bool:
        """The platform can list the messages of a chat."""

    @property
    def patience(self) -> Mapping[str, Sequence[timedelta]]:
        """Delays before the next calls of the same part, by the code of a failure that resolves itself."""

    @property
    def identifies_by_call(self) -> bool:
        """``identify`` calls the platform and needs a slot; else the token itself contains the id of the bot."""

    async def identify(self, token: Secret) -> str | Failed:
        """The id of the token's bot; it stays the same when the token is rotated."""

    async def probe(self, token: Secret, within: timedelta) -> Failed | None:
        """Ask the platform, with a call, who the bot is: ``None`` when it says so. Posts nothing and takes no slot."""

    async def send(self, part: Part, target: Target, media: Sequence[Material] = ()) -> AcceptedPart | Failed:
        """Send one part in one call; ``media`` has the source of each item, in order."""

    async def upload(self, item: PlannedMedia, source: Source, target: Target) -> Held | Failed:
        """Upload an item; only where ``uploads_apart``."""

    async def find(
        self, part: Part, target: Target, since: datetime, other_than: Collection[str]
    ) -> AcceptedPart | Failed | None:
        """Find the message of this part in the chat, ``None`` when there is none; only where ``can_find``."""


class Http(Protocol):
    """The HTTP client of an adapter.

    It raises only ``NotSent`` and ``Unanswered``, and the exceptions of the source of a streamed body.
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
