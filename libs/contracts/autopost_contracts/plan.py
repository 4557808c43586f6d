"""A plan: the ordered provider calls that one render profile will see. Preview is payload.

A plan holds no chat, token, file id or time, so all channels of a profile share one, and its hash is the
same in a dry run and in the stored rendering.
"""

from hashlib import sha256
from typing import Any, Literal

import msgspec
from msgspec import Struct

from autopost_contracts.payload import Button, Platform

PLAN_VERSION = 1

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


class TextPart(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind", tag="text"):
    text: str
    markup: Markup = "plain"
    buttons: tuple[tuple[Button, ...], ...] = ()
    disable_preview: bool = False
    silent: bool = False
    protect: bool = False


Part = TextPart


class Plan(Struct, frozen=True, kw_only=True, omit_defaults=True):
    version: int
    platform: Platform
    parts: tuple[Part, ...]
    notes: tuple[str, ...] = ()
    """What the platform cannot do and the plan therefore leaves out, in words."""

    def digest(self) -> str:
        return sha256(msgspec.json.encode(self, order="sorted")).hexdigest()


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
