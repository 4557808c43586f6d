"""A plan: the ordered provider calls that one render profile will see. Preview is payload.

A plan holds no chat, token, file id or time, so all channels of a profile share one, and its hash is the
same in a dry run and in the stored rendering.
"""

from hashlib import sha256
from typing import Any, Literal

import msgspec
from msgspec import Struct

from autopost_contracts.payload import Button, MediaType, ParseMode, Platform

PLAN_VERSION = 2

Markup = Literal["html", "markdown", "plain"]


class Profile(Struct, frozen=True, kw_only=True):
    """What of a channel changes how a post is rendered; ``profile_hash`` is computed by the database."""

    profile_hash: str
    platform: Platform
    send_mode: Literal["text", "media", "mixed"] = "mixed"
    settings: dict[str, Any] = {}
    template_ref: str | None = None
    template_version: int | None = None
    template_body: str | None = None
    template_defaults: dict[str, Any] = {}
    """The values that the template knows, each as it is where the post says nothing."""
    template_parse_mode: ParseMode | None = None
    """What the template is written in; without one it has no markup of its own."""


class Preview(Struct, frozen=True, omit_defaults=True):
    """How the link in a text is previewed; all defaults: as the platform likes it."""

    disabled: bool = False
    size: Literal["small", "large"] | None = None
    above_text: bool = False


class PlannedMedia(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One picture, video or file of a message, by exactly one of its four sources.

    ``type`` is what it is sent as, which may differ from what the post called it: a picture too big to be a photo
    goes as a file.
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
    """One call with media: a single item, or several that the platform shows as one.

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
    notes: tuple[str, ...] = ()
    """What the platform cannot do and the plan therefore leaves out, in words."""

    def digest(self) -> str:
        return sha256(msgspec.json.encode(self, order="sorted")).hexdigest()

    @property
    def main_part(self) -> int:
        """The part that stands for the whole: the first with media, else the first."""
        if len(self.parts) == 1:
            return 0
        return next((index for index, part in enumerate(self.parts) if isinstance(part, MediaPart)), 0)


class Problem(Struct, frozen=True):
    """Why no plan can express the content for this profile."""

    code: str
    field: str
    message: str


class Compiled(Struct, frozen=True, kw_only=True):
    """One answer of ``compile``: a plan, or the problems that forbid one."""

    profile_hash: str
    plan: Plan | None = None
    problems: tuple[Problem, ...] = ()
    template_version: int | None = None
