"""A text over the limit is refused, split or cut off, as the channel says; nothing is torn apart."""

import re
from typing import Any

import pytest
from autopost_adapters.markup.graphemes import is_boundary
from autopost_adapters.markup.marked import Entity, Marked, tidy
from autopost_adapters.markup.nesting import WHOLE
from autopost_adapters.markup.visible import is_visible
from autopost_adapters.max.compile import compile_content as compile_for_max
from autopost_adapters.max.limits import LIMITS as MAX
from autopost_adapters.planning.cut_text import ELLIPSIS, Uncuttable, split, truncate
from autopost_adapters.planning.limits import Limits
from autopost_adapters.planning.measure import Measure
from autopost_adapters.telegram.compile import compile_content as compile_for_telegram
from autopost_adapters.telegram.limits import LIMITS as TELEGRAM
from autopost_contracts.payload import Content, Flags, ParseMode
from autopost_contracts.plan import Compiled, Profile, TextPart
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from adapters.random_markup import marked_texts

PLATFORMS = {"telegram": TELEGRAM, "max": MAX}


def shrunk(limits: Limits, **text: int) -> Limits:
    return replace(limits, text=replace(limits.text, **text))


def compiled(text: str, limits: Limits, parse_mode: ParseMode | None = None, **settings: Any) -> Compiled:
    compile_content = compile_for_telegram if limits.platform == "telegram" else compile_for_max
    profile = Profile(profile_hash="p", platform=limits.platform, settings=settings)
    return compile_content(Content(text=text, parse_mode=parse_mode), Flags(), profile, limits)


def texts(answer: Compiled) -> list[str]:
    assert answer.plan is not None, answer.problems
    return [part.text for part in answer.plan.parts if isinstance(part, TextPart)]


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("one two.\n\nthree four five", ["one two.", "three four five"]),
        ("one. two\nthree four five", ["one. two", "three four five"]),
        ("one two. three four", ["one two.", "three four"]),
        ("one two three four", ["one two three", "four"]),
        ("a\n\nbcdefghijklmnopqrst", ["a\n\nbcdefghijklm", "nopqrst"]),
        ("one two three \u0301four", ["one two", "three \u0301four"]),
        ("one" + " " * 20 + "two", ["one", "two"]),
        ("x" * 32, ["x" * 15, "x" * 15, "xx"]),
        ("👩‍👩‍👧" * 4, ["👩‍👩‍👧" * 3, "👩‍👩‍👧"]),
        ("🇩🇪" * 8, ["🇩🇪" * 7, "🇩🇪"]),
    ],
)
def test_a_text_is_split_at_the_best_place_in_reach(text: str, pieces: list[str]) -> None:
    assert texts(compiled(text, shrunk(TELEGRAM, text=15), overflow="split")) == pieces


def test_a_split_goes_around_an_entity_and_each_piece_brings_its_own_markup() -> None:
    answer = compiled("one <b>two three</b> four", shrunk(TELEGRAM, text=10), "HTML", overflow="split")

    assert texts(answer) == ["one", "<b>two three</b>", "four"]


def test_markdown_that_goes_as_html_is_measured_as_html() -> None:
    """It would need backslashes."""
    text = "*x* " + r"\*" * 20 + r" **a\*b**" + "c" * 30

    pieces = texts(compiled(text, shrunk(MAX, text=42), "Markdown", overflow="split"))

    assert pieces[0] == f"<i>x</i> {'*' * 20}"
    assert all(len(piece) <= 42 for piece in pieces)


def test_a_cut_text_ends_with_an_ellipsis_and_the_plan_says_so() -> None:
    answer = compiled("one two three four", shrunk(TELEGRAM, text=15), overflow="truncate")

    assert texts(answer) == ["one two three…"]
    assert answer.plan is not None
    assert answer.plan.notes == ("text was truncated to 13 of 18 characters",)


@pytest.mark.parametrize("policy", ["split", "truncate"])
@pytest.mark.parametrize("platform", PLATFORMS)
def test_a_link_longer_than_a_message_is_a_problem(platform: str, policy: str) -> None:
    link = "<a href='https://a.example/'>one two three four</a> x"
    answer = compiled(link, shrunk(PLATFORMS[platform], text=15), "HTML", overflow=policy)

    assert [(one.code, one.field) for one in answer.problems] == [("message_too_long", "text")]
    assert "one two three four" in answer.problems[0].message


LONG: dict[str, tuple[str, str, str]] = {
    "bold": ("<b>", "</b>", "HTML"),
    "bold in Markdown": ("**", "**", "Markdown"),
    "quote": ("<blockquote>", "</blockquote>", "HTML"),
    "code": ("<pre>", "</pre>", "HTML"),
    "code with a language": ('<pre><code class="language-py">', "</code></pre>", "HTML"),
    "fence": ("```\n", "\n```", "Markdown"),
    "bold in a quote": ("<blockquote><b>", "</b></blockquote>", "HTML"),
}


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("kind", LONG)
def test_a_post_that_is_one_long_entity_is_split_inside_it(platform: str, kind: str) -> None:
    before, after, parse_mode = LONG[kind]
    words = " ".join(f"word{number}" for number in range(2000))

    pieces = texts(compiled(before + words + after, PLATFORMS[platform], parse_mode, overflow="split"))  # type: ignore[arg-type]

    begin, end = re.match("(?:<[^>]*>|[*]{2})*", pieces[0])[0], re.search("(?:</[^>]*>|[*]{2})*$", pieces[0])[0]  # type: ignore[index]
    assert begin
    assert len(pieces) == 5
    assert all(piece.startswith(begin) and piece.endswith(end) for piece in pieces)
    assert " ".join(piece[len(begin) : -len(end)] for piece in pieces).split() == words.split()


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("kind", LONG)
def test_a_post_that_is_one_long_entity_is_truncated_inside_it(platform: str, kind: str) -> None:
    before, after, parse_mode = LONG[kind]

    [cut] = texts(compiled(f"{before}{'word ' * 2000}{after}", PLATFORMS[platform], parse_mode, overflow="truncate"))  # type: ignore[arg-type]

    assert cut.endswith(("></pre>…", "word</pre>…", "…"))
    assert 3900 < len(cut) < 4200


def test_an_entity_that_fits_into_a_message_is_not_cut() -> None:
    text = f"{'a ' * 400}\n\n<pre>{'b' * 4000}</pre>"

    pieces = texts(compiled(text, TELEGRAM, "HTML", overflow="split"))

    assert [len(piece) for piece in pieces] == [799, 4011]


def test_a_truncated_text_is_as_long_as_it_can_be() -> None:
    text = f"<b>Title</b>\n<blockquote>{'word ' * 799}</blockquote>{'x ' * 100}"

    [cut] = texts(compiled(text, shrunk(TELEGRAM, text=4000), "HTML", overflow="truncate"))

    assert cut.endswith("word</blockquote>…")
    assert len(cut) > 3900


def test_code_that_is_cut_loses_one_line_break_and_no_indentation() -> None:
    lines = [f"{' ' * (4 * (number % 4))}line {number}" for number in range(800)]
    text = "```py\n" + "\n".join(lines) + "\n```"

    pieces = texts(compiled(text, TELEGRAM, "Markdown", overflow="split"))

    begin, end = '<pre><code class="language-py">', "</code></pre>"
    assert len(pieces) > 2
    assert all(piece.startswith(begin) and piece.endswith(end) for piece in pieces)
    assert "\n".join(piece.removeprefix(begin).removesuffix(end) for piece in pieces).split("\n") == lines


@pytest.mark.parametrize("mark", ["<a href='https://a.example/'>", "<a href='tg://user?id=1'>"])
def test_a_link_or_mention_is_never_cut(mark: str) -> None:
    text = f"<b>{'a ' * 1000}{mark}{'b ' * 1500}</a>{'c ' * 1000}</b>"

    pieces = texts(compiled(text, TELEGRAM, "HTML", overflow="split"))

    assert sum(piece.count("</a>") for piece in pieces) == 1
    assert "".join(pieces).count("<b>") == len(pieces)


def test_without_a_policy_a_long_text_is_refused_with_both_numbers() -> None:
    [problem] = compiled("я" * 4097, TELEGRAM).problems

    assert (problem.code, problem.field) == ("message_too_long", "text")
    assert "4097" in problem.message
    assert "4096" in problem.message


def test_an_unknown_policy_is_told_by_name() -> None:
    [problem] = compiled("a", TELEGRAM, overflow="shrink").problems

    assert (problem.code, problem.field) == ("setting_unknown", "settings.overflow")
    assert "shrink" in problem.message


def test_more_markup_than_telegram_shows_is_refused_or_split() -> None:
    text = " ".join("<b>x</b>" for _ in range(101))

    assert [one.code for one in compiled(text, TELEGRAM, "HTML").problems] == ["too_much_markup"]
    assert [piece.count("<b>") for piece in texts(compiled(text, TELEGRAM, "HTML", overflow="split"))] == [100, 1]


def test_more_bytes_than_telegram_reads_are_refused_or_split() -> None:
    link = f'<a href="https://a.example/{"x" * 2000}">x</a>'
    text = " ".join([link] * 20)

    [problem] = compiled(text, TELEGRAM, "HTML").problems
    pieces = texts(compiled(text, TELEGRAM, "HTML", overflow="split"))

    assert "32768" in problem.message
    assert len(pieces) == 2
    assert all(len(piece.encode()) <= 32_768 for piece in pieces)


@settings(max_examples=200, deadline=None)
@given(
    marked=marked_texts(max_size=40),
    platform=st.sampled_from(["telegram", "max"]),
    parse_mode=st.sampled_from(["HTML", "Markdown"]),
    limit=st.integers(20, 60),
    entities=st.integers(1, 4),
)
def test_pieces_are_the_text_in_order_within_every_limit(
    marked: Marked, platform: str, parse_mode: ParseMode, limit: int, entities: int
) -> None:
    marked = only_shown(marked, PLATFORMS[platform])
    measure = Measure(shrunk(PLATFORMS[platform], text=limit, entities=entities, raw_bytes=limit * 3), parse_mode)

    try:
        pieces = split(marked, measure.fits_text, limit)
    except Uncuttable as exc:
        assert any(not measure.fits_text(one) for one in occurrences(marked, str(exc)))
        return

    assert all(measure.fits_text(piece) and piece.text for piece in pieces)
    assert covered(placed(marked, pieces), marked.text) == covered(list(marked.entities), marked.text)
    assert whole(placed(marked, pieces), marked.text) == whole(list(marked.entities), marked.text)


@settings(max_examples=150, deadline=None)
@given(marked=marked_texts(max_size=40), limit=st.integers(20, 60))
def test_a_cut_text_is_the_beginning_of_the_whole_and_fits(marked: Marked, limit: int) -> None:
    marked = only_shown(marked, TELEGRAM)
    measure = Measure(shrunk(TELEGRAM, text=limit), "HTML")

    try:
        kept = truncate(marked, measure.fits_text, limit)
    except Uncuttable:
        return

    assert measure.fits_text(kept)
    assert kept == marked or (kept.text.endswith(ELLIPSIS) and marked.text.startswith(kept.text[:-1]))
    shown = [one.clipped(0, len(kept.text) - 1) for one in marked.entities if one.start < len(kept.text) - 1]
    assert kept == marked or covered(list(kept.entities), kept.text) == covered(shown, kept.text)
    assert kept == marked or is_boundary(marked.text, len(kept.text) - 1)


def only_shown(marked: Marked, limits: Limits) -> Marked:
    return tidy(marked.text, (one for one in marked.entities if one.kind in limits.text.kinds))


def covered(entities: list[Entity], text: str) -> set[tuple[int, str, str]]:
    """The visible characters with the markup that each of them has."""
    return {(at, one.kind, one.value) for one in entities for at in range(one.start, one.end) if is_visible(text[at])}


def whole(entities: list[Entity], text: str) -> list[Entity]:
    return [one for one in entities if one.kind in WHOLE and is_visible(text[one.start : one.end])]


def occurrences(marked: Marked, text: str) -> list[Marked]:
    starts = [at for at in range(len(marked.text)) if marked.text.startswith(text, at)]
    return [marked.part(at, at + len(text)) for at in starts]


def placed(marked: Marked, pieces: list[Marked]) -> list[Entity]:
    """The entities of all pieces where they stand in the whole; only whitespace is between two pieces."""
    at, found = 0, []
    for piece in pieces:
        start = marked.text.index(piece.text, at)
        assert not is_visible(marked.text[at:start])
        assert is_boundary(marked.text, at)
        assert is_boundary(marked.text, start)
        found += [replace(one, start=one.start + start, end=one.end + start) for one in piece.entities]
        at = start + len(piece.text)
    assert not is_visible(marked.text[at:])
    return found
