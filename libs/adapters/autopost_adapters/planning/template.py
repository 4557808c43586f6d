"""Render a post with its channel's template, under fixed limits.

A template can use ``text``, ``links``, ``tags`` and the names in its defaults; the post's ``meta`` overrides a default.
The result is in the template's parse mode: the text of a post without one is escaped, and a post in another one is a
problem, because its marks would be shown as text. A template without a parse mode takes the post's. All other values
are plain and are escaped.
"""

import re
from collections.abc import Callable
from typing import Any

from autopost_contracts.payload import Content, Flags, ParseMode
from autopost_contracts.plan import Problem, Profile
from autopost_runtime.secrets.redaction import quoted
from msgspec import Struct

from autopost_adapters.markup import html, max_markdown

_ESCAPE: dict[ParseMode | None, Callable[[str], str]] = {
    None: str,
    "HTML": html.escape,
    "Markdown": max_markdown.escape,
}
_MARKS: dict[ParseMode, re.Pattern[str]] = {
    "HTML": re.compile(
        r"</?(?:a|b|strong|i|em|u|ins|s|strike|del|code|pre|blockquote|mark|h[1-6]|br|p|span|tg-[a-z]+)(?:\s[^<>]*)?/?>",
        re.IGNORECASE,
    ),
    "Markdown": re.compile(r"\*\*[^\s*][^*\n]*\*\*|\[[^\[\]\n]+\]\((?:https?|tg|max)://"),
}
"""Clear signs of markup, which plain text does not contain."""


class Rendered(Struct, frozen=True):
    """The rendered text of a post, and its markup language."""

    text: str
    parse_mode: ParseMode | None


def render(profile: Profile, content: Content, flags: Flags) -> Rendered | Problem:
    """Without a template, the text with its links."""
    if profile.template_ref is None:
        return Rendered(with_links(content), content.parse_mode)
    name = quoted(profile.template_ref)
    if profile.template_body is None:
        return Problem("template_missing", "template_ref", f"unknown template {name!r}")
    mode = profile.template_parse_mode or content.parse_mode
    if wrong := _mismatch(profile, content.parse_mode):
        return Problem("parse_mode_mismatch", "template_ref", f"{name}: {wrong}")
    from autopost_adapters.planning import template_engine as engine  # takes 0.3 s, needed only for templates

    try:
        return Rendered(_filled(engine, profile, content, flags, mode), mode)
    except engine.LiquidError as exc:
        return Problem("template_failed", "template_ref", f"{name}: {quoted(str(exc))}")
    except Exception as exc:  # a template is user code: its failure must not affect other channels
        return Problem("template_failed", "template_ref", f"{name}: {type(exc).__name__}")


def with_links(content: Content) -> str:
    """Append the links that the text does not contain, one per line."""
    escape = _ESCAPE[content.parse_mode]
    missing = [escape(link) for link in content.links if link not in content.text]
    return "\n\n".join(filter(None, (content.text, "\n".join(missing))))


def _mismatch(profile: Profile, posted: ParseMode | None) -> str | None:
    """Why markup would be shown as text; ``None`` if it would not."""
    own = profile.template_parse_mode
    if own and posted and own != posted:
        return f"the template is in {own} and the post in {posted}; post in {own} or without parse_mode"
    if own:
        return None
    body = profile.template_body or ""
    shown = next((mode for mode, marks in _MARKS.items() if mode != posted and marks.search(body)), None)
    if shown is None:
        return None
    return (
        f"the template contains {shown} and the post is in {posted or 'no parse_mode'}; set parse_mode of the template"
    )


def _filled(engine: Any, profile: Profile, content: Content, flags: Flags, mode: ParseMode | None) -> str:
    is_html = mode == "HTML"
    template = engine.parse(profile.template_body, is_html=is_html)
    # A template that uses ``links`` gets a text without them.
    text: Any = content.text if "links" in template.names else with_links(content)
    values = _values(profile, content, flags)
    if mode == "Markdown":
        values = _escaped(values)
    if content.parse_mode == mode:
        text = engine.Markup(text) if is_html else text
    elif mode == "Markdown":
        text = max_markdown.escape(text)
    rendered: str = template.render(values | {"text": text})
    return str(rendered).strip()


def _values(profile: Profile, content: Content, flags: Flags) -> dict[str, Any]:
    fields = {name: flags.fields.get(name, default) for name, default in profile.template_defaults.items()}
    return fields | {"links": list(content.links), "tags": list(flags.tags)}


def _escaped(value: Any) -> Any:
    match value:
        case str():
            return max_markdown.escape(value)
        case list():
            return [_escaped(item) for item in value]
        case dict():
            return {name: _escaped(item) for name, item in value.items()}
        case _:
            return value
