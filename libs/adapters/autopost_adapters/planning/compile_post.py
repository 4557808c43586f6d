"""Compile content into a plan, the same way for all platforms.

    settings → texts, media, buttons → parts → plan

A platform supplies its ``Limits``. All problems are reported at once, up to ``MOST_PROBLEMS``; lengths are checked only
when the texts have no other problem.
"""

from collections.abc import Sequence

from autopost_contracts.payload import Button, Content, Flags
from autopost_contracts.plan import (
    BOT_PLAN_VERSION,
    PLAN_VERSION,
    Compiled,
    MediaPart,
    Part,
    Plan,
    Preview,
    Problem,
    Profile,
    TextPart,
)
from msgspec import Struct
from msgspec.structs import replace

from autopost_adapters.markup.marked import EDGE, Marked
from autopost_adapters.markup.visible import is_visible
from autopost_adapters.markup.web_links import first_web_link
from autopost_adapters.planning.buttons import button_problems
from autopost_adapters.planning.layout import lay_out
from autopost_adapters.planning.limits import Limits
from autopost_adapters.planning.measure import Measure
from autopost_adapters.planning.media import Media, plan_media
from autopost_adapters.planning.options import Options, dropped, read_options
from autopost_adapters.planning.settings import Settings, read_settings
from autopost_adapters.planning.text import ParsedTexts, read_words

Rows = tuple[tuple[Button, ...], ...]

MOST_PROBLEMS = 20
"""Per profile: a post may have thousands of wrong buttons, and a workspace many profiles."""


class _Material(Struct, frozen=True, kw_only=True):
    words: ParsedTexts
    media: Media
    buttons: Rows

    def problems(self, limits: Limits) -> tuple[Problem, ...]:
        found = (*self.words.problems, *self.media.problems, *button_problems(self.buttons, limits.buttons))
        if found or self.words.text.text or self.media.items:
            return found
        return (Problem("message_empty", "text", "no visible text to send"),)


def compile_post(content: Content, flags: Flags, profile: Profile, limits: Limits) -> Compiled:
    settings = read_settings(profile.settings)
    if isinstance(settings, Problem):
        return _compiled(profile, (settings,))
    content = _with_default_mode(content, settings)
    if plain := _plain(content, flags, profile, limits, settings):
        return _compiled(profile, (), plain)
    material = _Material(
        words=read_words(content, flags, profile, limits, settings),
        media=plan_media(content.media, limits, settings),
        buttons=tuple(row for row in content.buttons if row),
    )
    if problems := material.problems(limits):
        return _compiled(profile, problems)
    made = _plan(material, Measure(limits, material.words.parse_mode), read_options(flags, settings), settings)
    return _compiled(profile, (), made) if isinstance(made, Plan) else _compiled(profile, made)


def _with_default_mode(content: Content, settings: Settings) -> Content:
    """A post without a parse mode gets the channel's."""
    if content.parse_mode or settings.parse_mode is None:
        return content
    return replace(content, parse_mode=settings.parse_mode)


def _plain(content: Content, flags: Flags, profile: Profile, limits: Limits, settings: Settings) -> Plan | None:
    """A fast path with the same result for plain text that fits into one message, as in most posts."""
    if content.parse_mode or content.links or content.media or content.buttons or profile.template_ref is not None:
        return None
    marked, measure = Marked(content.text.strip(EDGE)), Measure(limits, None)
    if not is_visible(marked.text):
        return None
    written = measure.write(marked)
    if not measure.surely_fits_text(written) and not measure.fits_text(marked):
        return None
    asked = read_options(flags, settings)
    shown = asked.shown_on(limits)
    preview = Preview(url=first_web_link(marked)) if shown.preview.size else Preview()
    part = shown.dress(TextPart(text=written.text, markup=written.markup, preview=preview))
    return Plan(
        version=PLAN_VERSION,
        platform=limits.platform,
        parts=(part,),
        thread=shown.thread,
        notes=tuple(dropped(asked, shown)),
    )


def _plan(material: _Material, measure: Measure, asked: Options, settings: Settings) -> Plan | tuple[Problem, ...]:
    limits, words, media = measure.limits, material.words, material.media
    shown = asked.shown_on(limits)
    layout = lay_out(
        words,
        media.items,
        measure,
        settings.overflow,
        buttons=bool(material.buttons),
        names_preview=shown.preview.size is not None,
    )
    if layout.problems:
        return layout.problems
    parts = _with_buttons(layout.parts, material.buttons, settings.buttons_text.strip(), limits)
    only_links = all(button.kind == "link" for row in material.buttons for button in row)
    return Plan(
        version=PLAN_VERSION if only_links else BOT_PLAN_VERSION,
        platform=limits.platform,
        parts=tuple(shown.dress(part) for part in parts),
        thread=shown.thread,
        notes=(*words.notes, *media.notes, *layout.notes, *dropped(asked, shown)),
    )


def _with_buttons(parts: Sequence[Part], buttons: Rows, text: str, limits: Limits) -> Sequence[Part]:
    """Add the buttons to the last part, or to a separate message after it if that part cannot have buttons."""
    if not buttons:
        return parts
    *before, last = parts
    if isinstance(last, MediaPart) and len(last.media) > 1 and not limits.album.buttons:
        return [*parts, TextPart(text=text, buttons=buttons)]
    return [*before, replace(last, buttons=buttons)]


def _compiled(profile: Profile, problems: tuple[Problem, ...], plan: Plan | None = None) -> Compiled:
    return Compiled(
        profile_hash=profile.profile_hash,
        plan=plan,
        problems=problems[:MOST_PROBLEMS],
        template_version=profile.template_version,
    )
