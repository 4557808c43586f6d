"""The texts of a post, parsed and checked: its text with template and links, and the captions of its media.

The template is rendered before the text is parsed, so it may contain markup.
"""

from collections.abc import Iterator, Sequence

from autopost_contracts.payload import Content, Flags, ParseMode
from autopost_contracts.plan import Problem, Profile
from msgspec import Struct

from autopost_adapters.markup.html import read_html
from autopost_adapters.markup.links import has_public_host, shown, wrong_address
from autopost_adapters.markup.markdown import read_markdown_closely
from autopost_adapters.markup.marked import EDGE, NAMES, Marked
from autopost_adapters.markup.nesting import nest
from autopost_adapters.markup.visible import is_visible
from autopost_adapters.planning.limits import Limits, TextLimits
from autopost_adapters.planning.settings import Settings
from autopost_adapters.planning.template import render


class ParsedTexts(Struct, frozen=True, kw_only=True):
    """One caption for each media item; it may be empty."""

    text: Marked = Marked("")
    captions: tuple[Marked, ...] = ()
    parse_mode: ParseMode | None = None
    """The parse mode of the text; the template's may differ from the post's."""
    problems: tuple[Problem, ...] = ()
    notes: tuple[str, ...] = ()


class _Read(Struct, frozen=True):
    marked: Marked
    problem: Problem | None
    note: str | None = None


def read_words(content: Content, flags: Flags, profile: Profile, limits: Limits, settings: Settings) -> ParsedTexts:
    rendered = render(profile, content, flags)
    if isinstance(rendered, Problem):
        return ParsedTexts(problems=(rendered,))
    captions = enumerate(medium.caption for medium in content.media)
    read = [
        _read(rendered.text, rendered.parse_mode, "text", limits),
        *(_read(caption, content.parse_mode, f"media[{index}].caption", limits) for index, caption in captions),
    ]
    problems = (*(one.problem for one in read if one.problem), *_link_problems(content.links))
    if problems and settings.on_markup == "plain":
        return _without_markup(read, problems[0])
    first, *rest = (one.marked for one in read)
    notes = tuple(one.note for one in read if one.note)
    return ParsedTexts(text=first, captions=tuple(rest), parse_mode=rendered.parse_mode, problems=problems, notes=notes)


def _link_problems(links: Sequence[str]) -> Iterator[Problem]:
    """Links of the post itself, which follow its text."""
    for index, link in enumerate(links):
        if wrong := wrong_address(link):
            yield Problem("validation_failed", f"links[{index}]", wrong)


def _without_markup(read: list[_Read], problem: Problem) -> ParsedTexts:
    """Remove all markup: markup in only some places of a post could change its meaning."""
    first, *rest = (Marked(one.marked.plain()) for one in read)
    note = f"markup was removed from the whole post: {problem.field}: {problem.message}"
    return ParsedTexts(text=first, captions=tuple(rest), notes=(note,))


def _read(source: str, parse_mode: ParseMode | None, field: str, limits: Limits) -> _Read:
    unclosed = None
    match parse_mode:
        case "HTML":
            marked, wrong = read_html(source)
        case "Markdown":
            marked, wrong, unclosed = read_markdown_closely(source)
        case None:
            return _Read(Marked(source.strip(EDGE) if is_visible(source) else ""), None)
    nested, crossed = nest(marked if is_visible(marked.text) else Marked(""))
    wrong = wrong or crossed or _not_shown(nested, limits.platform, limits.text)
    note = f"{field}: {unclosed} is never closed and is shown as it stands" if unclosed else None
    return _Read(marked if wrong else nested, Problem("markup_unsupported", field, wrong) if wrong else None, note)


def _not_shown(marked: Marked, platform: str, limits: TextLimits) -> str | None:
    """The first entity that the platform would silently drop."""
    for entity in marked.entities:
        if entity.kind not in limits.kinds:
            return f"{NAMES[entity.kind]} cannot be shown on {platform}"
        if entity.kind != "link":
            continue
        if wrong := wrong_address(entity.value, limits.schemes):
            return f"<a>: {wrong} on {platform}"
        if limits.hosts_have_dots and not has_public_host(entity.value):
            return f"<a>: {shown(entity.value)} is not a URL that {platform} accepts"
    return None
