"""A plan: the ordered platform calls for one render profile. A preview shows exactly what is sent.

A plan holds no chat, token, file id or time, so all channels of a profile share one, and its hash is the
same in a dry run and in the stored rendering. It holds a topic only where the post names one.
"""

from hashlib import sha256
from typing import Any, Literal

import msgspec
from msgspec import Struct

from autopost_contracts.payload import Button, MediaType, ParseMode, Platform

PLAN_VERSION = 2
BOT_PLAN_VERSION = 3
"""Of a plan with buttons other than links."""

Markup = Literal["html", "markdown", "plain"]


class Profile(Struct, frozen=True, kw_only=True):
    """The properties of a channel that change a rendering; the database computes ``profile_hash``."""

    profile_hash: str
    platform: Platform
    send_mode: Literal["text", "media", "mixed"] = "mixed"
    settings: dict[str, Any] = {}
    template_ref: str | None = None
    template_version: int | None = None
    template_body: str | None = None
    template_defaults: dict[str, Any] = {}
    """The variables of the template, with their values for posts that set none."""
    template_parse_mode: ParseMode | None = None
    """The markup language of the template; ``None``: it has no markup of its own."""


class Preview(Struct, frozen=True, omit_defaults=True):
    """How the link in a text is previewed. With all defaults the platform decides."""

    disabled: bool = False
    url: str | None = None
    """The link to preview; Telegram ignores a size without it."""
    size: Literal["small", "large"] | None = None
    above_text: bool = False


class PlannedMedia(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One media item of a message, with exactly one of the four sources.

    ``type`` is the type it is sent as. It may differ from the post's: a picture that is too large for a photo is sent
    as a file.
    """

    type: MediaType
    blob_ref: str | None = None
    file_id: str | None = None
    attachment_token: str | None = None
    url: str | None = None
    content_type: str | None = None
    size: int | None = None
    name: str | None = None
    caption: str = ""
    markup: Markup = "plain"


class TextPart(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind", tag="text"):
    text: str
    markup: Markup = "plain"
    buttons: tuple[tuple[Button, ...], ...] = ()
    preview: Preview = Preview()
    silent: bool = False
    protect: bool = False


class MediaPart(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind", tag="media"):
    """One call with media: a single item or an album.

    The text of the message is the caption of its first item.
    """

    media: tuple[PlannedMedia, ...]
    caption_above: bool = False
    buttons: tuple[tuple[Button, ...], ...] = ()
    silent: bool = False
    protect: bool = False

    @property
    def text(self) -> str:
        return "\n\n".join(item.caption for item in self.media if item.caption)


Part = TextPart | MediaPart


class Plan(Struct, frozen=True, kw_only=True, omit_defaults=True):
    version: int
    platform: Platform
    parts: tuple[Part, ...]
    thread: int | None = None
    """The topic of a forum that the post names; ``None``: that of the channel."""
    notes: tuple[str, ...] = ()
    """What the platform does not support and the plan leaves out, as text for people."""

    def digest(self) -> str:
        return sha256(msgspec.json.encode(self, order="sorted")).hexdigest()

    @property
    def main_part(self) -> int:
        """The part that represents the post: the first with media, else the first."""
        if len(self.parts) == 1:
            return 0
        return next((index for index, part in enumerate(self.parts) if isinstance(part, MediaPart)), 0)


class Problem(Struct, frozen=True):
    """Why no plan can express the content for this profile."""

    code: str
    field: str
    message: str


class Compiled(Struct, frozen=True, kw_only=True):
    """The result of ``compile``: a plan, or the problems that prevent one."""

    profile_hash: str
    plan: Plan | None = None
    problems: tuple[Problem, ...] = ()
    template_version: int | None = None
