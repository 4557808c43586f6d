"""Compile a text post: the part of compiling that all platforms share.

A platform gives its limits as ``TextLimits``; this module knows about links, templates, markup and length once.
"""

from collections.abc import Callable, Set

from autopost_contracts.payload import Content, Flags
from autopost_contracts.plan import PLAN_VERSION, Compiled, Markup, Plan, Preview, Problem, Profile, TextPart
from msgspec import Struct

from autopost_adapters import markup
from autopost_adapters.template import render


class TextLimits(Struct, frozen=True, kw_only=True):
    platform: str
    text: int
    tags: Set[str]
    buttons_per_row: int
    rows: int
    silent: bool
    count: Callable[[str, str], int]
    """Of (text as sent, text as seen): how the platform counts."""


def compile_text(content: Content, flags: Flags, profile: Profile, limits: TextLimits) -> Compiled:
    text, kind, problems = _written(content, profile, limits)
    problems += _button_problems(content, limits)
    if not text.strip():
        problems.append(Problem("message_empty", "text", "there is no text to send"))
    if problems:
        return Compiled(
            profile_hash=profile.profile_hash, problems=tuple(problems), template_version=profile.template_version
        )
    silent = flags.silent or bool(profile.settings.get("silent"))
    part = TextPart(
        text=text,
        markup=kind,
        buttons=content.buttons,
        preview=Preview(disabled=flags.disable_preview or bool(profile.settings.get("disable_preview"))),
        silent=silent and limits.silent,
        protect=bool(profile.settings.get("protect")),
    )
    notes = ("silent is not possible here and was dropped",) if silent and not limits.silent else ()
    plan = Plan(version=PLAN_VERSION, platform=limits.platform, parts=(part,), notes=notes)
    return Compiled(profile_hash=profile.profile_hash, plan=plan, template_version=profile.template_version)


def _written(content: Content, profile: Profile, limits: TextLimits) -> tuple[str, Markup, list[Problem]]:
    """The final text and how it is marked up."""
    if content.media:
        return "", "plain", [Problem("media_unsupported", "media", "posts with media cannot be compiled yet")]
    if content.parse_mode == "Markdown":
        return "", "plain", [Problem("markup_unsupported", "parse_mode", "Markdown cannot be compiled yet, use HTML")]
    is_html = content.parse_mode == "HTML"
    text, problem = render(profile, _with_links(content, is_html))
    if problem:
        return text, "plain", [problem]
    visible = text
    if is_html:
        visible, problem = markup.check_html(text, limits.tags)
        if problem and profile.settings.get("on_markup", "fail") == "plain":
            text, is_html, problem = visible, False, None
    problems = [problem] if problem else []
    if (length := limits.count(text, visible)) > limits.text:
        problems.append(Problem("message_too_long", "text", f"{length} characters, {limits.text} are allowed"))
    return text, "html" if is_html else "plain", problems


def _with_links(content: Content, is_html: bool) -> str:
    """Links that the text does not already show follow it, one per line."""
    missing = [link for link in content.links if link not in content.text]
    shown = [markup.escape(link) for link in missing] if is_html else missing
    return "\n\n".join(filter(None, (content.text, "\n".join(shown))))


def _button_problems(content: Content, limits: TextLimits) -> list[Problem]:
    rows = content.buttons
    if len(rows) > limits.rows:
        return [Problem("too_many_buttons", "buttons", f"{len(rows)} rows, {limits.rows} are allowed")]
    return [
        Problem("too_many_buttons", f"buttons[{index}]", f"{len(row)} in a row, {limits.buttons_per_row} are allowed")
        for index, row in enumerate(rows)
        if len(row) > limits.buttons_per_row
    ]
