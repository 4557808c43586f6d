"""Put a post into its channel's template, under limits that no template can talk its way out of.

A template knows ``text``, ``links``, ``tags`` and what its defaults name: each of those is taken from the post's
``meta`` where it is said there. The text is in the post's parse mode, as the template itself is; all other values are
plain and are escaped.
"""

from collections.abc import Callable
from typing import Any

from autopost_contracts.payload import Content, Flags, ParseMode
from autopost_contracts.plan import Problem, Profile

from autopost_adapters.markup import html, max_markdown

_ESCAPE: dict[ParseMode | None, Callable[[str], str]] = {
    None: str,
    "HTML": html.escape,
    "Markdown": max_markdown.escape,
}


def render(profile: Profile, content: Content, flags: Flags) -> tuple[str, Problem | None]:
    """The text with its links where the channel has no template."""
    if profile.template_ref is None:
        return with_links(content), None
    if profile.template_body is None:
        return "", Problem("template_missing", "template_ref", f"there is no template {profile.template_ref!r}")
    from autopost_adapters.planning import template_engine as engine  # a third of a second only templates are worth

    try:
        return _filled(engine, profile, content, flags), None
    except engine.LiquidError as exc:
        return "", Problem("template_failed", "template_ref", f"{profile.template_ref}: {exc}")
    except Exception as exc:  # a template is foreign code: however it breaks, only its own channels are hurt
        return "", Problem("template_failed", "template_ref", f"{profile.template_ref}: {type(exc).__name__}")


def with_links(content: Content) -> str:
    """Links that the text does not already show follow it, one per line."""
    escape = _ESCAPE[content.parse_mode]
    missing = [escape(link) for link in content.links if link not in content.text]
    return "\n\n".join(filter(None, (content.text, "\n".join(missing))))


def _filled(engine: Any, profile: Profile, content: Content, flags: Flags) -> str:
    is_html = content.parse_mode == "HTML"
    template = engine.parse(profile.template_body, is_html=is_html)
    # A template that shows the links itself gets a text without them.
    text = content.text if "links" in template.names else with_links(content)
    values = _values(profile, content, flags)
    if content.parse_mode == "Markdown":
        values = _escaped(values)
    rendered: str = template.render(values | {"text": engine.Markup(text) if is_html else text})
    return str(rendered).strip()


def _values(profile: Profile, content: Content, flags: Flags) -> dict[str, Any]:
    said = {name: flags.fields.get(name, default) for name, default in profile.template_defaults.items()}
    return said | {"links": list(content.links), "tags": list(flags.tags)}


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
