"""What a post becomes on each platform: its text, links, template and buttons; pure, and without surprises."""

from typing import Any

import msgspec
import pytest
from autopost_adapters.compilers import compile_content
from autopost_contracts.payload import Button, Content, Flags, Medium, ParseMode, PostRequest
from autopost_contracts.plan import Compiled, Plan, Preview, Profile, TextPart
from autopost_ingest.posts.normalize import normalize

NESTED = "<blockquote>a<blockquote>b</blockquote></blockquote>"
LIMITS = {"telegram": 4096, "max": 4000}


def compiled(platform: str, content: Content, flags: Flags | None = None, **profile: object) -> Compiled:
    given = Profile(profile_hash="p", platform=platform, **profile)  # type: ignore[arg-type]
    return compile_content(content, flags or Flags(), given)


def problems(result: Compiled) -> list[str]:
    assert (result.plan is None) == bool(result.problems)
    return [problem.code for problem in result.problems]


@pytest.mark.parametrize("platform", LIMITS)
def test_text_at_the_limit_passes_and_one_more_does_not(platform: str) -> None:
    limit = LIMITS[platform]

    assert problems(compiled(platform, Content(text="я" * limit))) == []
    assert problems(compiled(platform, Content(text="я" * (limit + 1)))) == ["message_too_long"]


def test_telegram_counts_what_is_seen_and_max_what_is_sent() -> None:
    marked = Content(text=f"<b>{'я' * 3995}</b>", parse_mode="HTML")
    emoji = Content(text="🦊" * 2001)

    assert problems(compiled("telegram", marked)) == []
    assert problems(compiled("max", marked)) == ["message_too_long"]
    assert problems(compiled("telegram", emoji)) == []
    assert problems(compiled("max", emoji)) == ["message_too_long"]


@pytest.mark.parametrize("text", ["<p>a</p>", "<b>a", "a</b>", "<b><i>a</b></i>", "<a>x</a>", "a<b/>b", NESTED])
@pytest.mark.parametrize("platform", LIMITS)
def test_markup_that_cannot_be_shown_fails_or_becomes_plain_as_the_channel_says(platform: str, text: str) -> None:
    content = Content(text=text, parse_mode="HTML")

    plain = compiled(platform, content, settings={"on_markup": "plain"}).plan

    assert problems(compiled(platform, content)) == ["markup_unsupported"]
    assert plain is not None
    assert plain.parts[0].markup == "plain"
    assert "<" not in plain.parts[0].text


CODE = "    def f():\n        return  1"


@pytest.mark.parametrize("platform", LIMITS)
@pytest.mark.parametrize(
    ("text", "parse_mode"),
    [
        (f"<pre>{CODE}</pre>", "HTML"),
        (f"<pre>\n{CODE}\n</pre>", "HTML"),
        (f"  \n<pre><code>{CODE}\n</code></pre>\n", "HTML"),
        (f"```\n{CODE}\n```", "Markdown"),
        (f"before\n```\n{CODE}\n```\nafter", "Markdown"),
        (f"before <pre>{CODE}</pre>", "HTML"),
    ],
)
def test_code_keeps_the_indentation_of_its_first_line(platform: str, text: str, parse_mode: ParseMode) -> None:
    normalized = normalize(PostRequest(text=text, parse_mode=parse_mode))

    plan = compiled(platform, normalized.content).plan

    assert plan is not None
    assert f"<pre>{CODE}</pre>" in plan.parts[0].text


@pytest.mark.parametrize(
    ("text", "parse_mode", "seen"),
    [
        ("<code>  a  </code> b", "HTML", "<code>  a  </code> b"),
        ("` a  b` c", "Markdown", "<code> a  b</code> c"),
        ("\n  <b>a</b> ", "HTML", "<b>a</b>"),
        ("  <i> a</i>", "HTML", "<i>a</i>"),
        ("<pre>  \n </pre><b>a</b>", "HTML", "<b>a</b>"),
        ("\u00a0a\u2003", None, "\u00a0a\u2003"),
    ],
)
def test_only_what_stands_before_the_first_entity_is_trimmed(text: str, parse_mode: ParseMode, seen: str) -> None:
    plan = compiled("telegram", normalize(PostRequest(text=text, parse_mode=parse_mode)).content).plan

    assert plan is not None
    assert plan.parts[0].text == seen


def test_links_that_the_text_lacks_follow_it() -> None:
    content = Content(text="see https://a.example/", links=("https://a.example/", "https://b.example/?x=1&y=2"))

    plan = compiled("telegram", content).plan

    assert plan is not None
    assert plan.parts[0].text == "see https://a.example/\n\nhttps://b.example/?x=1&y=2"


@pytest.mark.parametrize(
    ("own", "of_channel", "text", "sent"),
    [
        (None, "HTML", "<i>a</i> *b*", "<i>a</i> *b*"),
        (None, "Markdown", "<i>a</i> *b*", "&lt;i&gt;a&lt;/i&gt; <i>b</i>"),
        ("HTML", "Markdown", "<i>a</i> *b*", "<i>a</i> *b*"),
        ("Markdown", "HTML", "**b**", "<b>b</b>"),
        (None, None, "<i>a</i>", "<i>a</i>"),
    ],
)
def test_the_parse_mode_of_a_channel_is_the_default_of_posts_without_one(
    own: ParseMode | None, of_channel: ParseMode | None, text: str, sent: str
) -> None:
    settings = {} if of_channel is None else {"parse_mode": of_channel}

    plan = compiled("telegram", Content(text=text, parse_mode=own), settings=settings).plan

    assert plan is not None
    assert plan.parts == (TextPart(text=sent, markup="html" if own or of_channel else "plain"),)


@pytest.mark.parametrize("content", [Content(text="a"), Content(text="<b>a</b>", parse_mode="HTML")])
def test_the_topic_that_a_post_names_is_in_the_plan_where_chats_have_topics(content: Content) -> None:
    telegram = compiled("telegram", content, Flags(thread=7)).plan
    usual = compiled("telegram", content, Flags()).plan
    elsewhere = compiled("max", content, Flags(thread=7)).plan

    assert telegram is not None
    assert usual is not None
    assert elsewhere is not None
    assert (telegram.thread, usual.thread, elsewhere.thread) == (7, None, None)
    assert telegram.digest() != usual.digest()
    assert telegram.notes == ()
    assert elsewhere.notes == ("routing.thread is not supported by the platform and was dropped",)


def test_silent_is_dropped_for_max_and_the_plan_says_so() -> None:
    plan = compiled("max", Content(text="a"), Flags(silent=True)).plan

    assert plan is not None
    assert not plan.parts[0].silent
    assert plan.notes


def test_a_template_surrounds_the_text_and_its_length_counts() -> None:
    template = {"template_ref": "t", "template_version": 3, "template_body": "{{ text }}\n-- {{ 'x' | upcase }}"}

    result = compiled("telegram", Content(text="a"), **template)

    assert result.plan is not None
    assert result.plan.parts[0].text == "a\n-- X"
    assert result.template_version == 3
    assert problems(compiled("telegram", Content(text="я" * 4092), **template)) == ["message_too_long"]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("{% for i in (1..100000000) %}{{ text }}{% endfor %}", "template_failed"),
        ("{% for i in (1..900) %}{{ text }}{% endfor %}", "template_failed"),
        ("{{ text", "template_failed"),
        (None, "template_missing"),
    ],
)
def test_a_template_that_runs_wild_or_is_missing_is_a_problem_of_its_channel(body: str | None, code: str) -> None:
    result = compiled("telegram", Content(text="a" * 100), template_ref="t", template_body=body)

    assert problems(result) == [code]


def test_a_platform_nobody_knows_is_a_problem_not_an_error() -> None:
    assert problems(compiled("pigeon", Content(text="a"))) == ["platform_unknown"]


@pytest.mark.parametrize(
    ("platform", "text", "named"),
    [
        ("telegram", "^^a^^", "<mark>"),
        ("telegram", "[a](tel:+7900)", "tel:+7900"),
        ("telegram", "[a](max://user/7)", "max://user/7"),
        ("telegram", "[a](http://intranet/)", "http://intranet/"),
        ("max", "||a||", "<tg-spoiler>"),
    ],
)
def test_markup_that_this_platform_would_drop_is_told_by_name(platform: str, text: str, named: str) -> None:
    [problem] = compiled(platform, Content(text=text, parse_mode="Markdown")).problems

    assert (problem.code, problem.field) == ("markup_unsupported", "text")
    assert named in problem.message


def test_plain_instead_of_markup_is_plain_in_whole_with_readable_links_and_a_note() -> None:
    text = "<b>a</b> <tg-spoiler>b</tg-spoiler> <a href='https://a.example/'>c</a> <a href='https://b.example/'>https://b.example/</a>"
    content = Content(text=text, parse_mode="HTML")

    plan = compiled("max", content, settings={"on_markup": "plain"}).plan

    assert plan is not None
    assert plan.parts == (TextPart(text="a b c (https://a.example/) https://b.example/"),)
    assert "<tg-spoiler>" in plan.notes[0]


@pytest.mark.parametrize("platform", ["telegram", "max"])
@pytest.mark.parametrize(
    ("text", "note"),
    [
        ("a **b", "text: ** is never closed and is shown as it stands"),
        ("a `b", "text: ` is never closed and is shown as it stands"),
        ("*a **b*", "text: * is never closed and is shown as it stands"),
        ("**a** 2 * 3, C++ or D++", None),
    ],
)
def test_a_mark_that_is_never_closed_is_shown_and_the_plan_says_so(platform: str, text: str, note: str | None) -> None:
    plan = compiled(platform, Content(text=text, parse_mode="Markdown")).plan

    assert plan is not None
    assert plan.notes == ((note,) if note else ())


@pytest.mark.parametrize(
    ("platform", "parse_mode", "text", "sent", "markup"),
    [
        ("telegram", "HTML", "<b>a</b> &amp; &copy;", "<b>a</b> &amp; ©", "html"),
        ("telegram", "Markdown", "**a** & *b*", "<b>a</b> &amp; <i>b</i>", "html"),
        ("telegram", "Markdown", "a & b", "a & b", "plain"),
        ("telegram", None, "<b>a</b> **b**", "<b>a</b> **b**", "plain"),
        ("max", "HTML", "<strong>a</strong><br>b", "<b>a</b>\nb", "html"),
        ("max", "Markdown", "__a__ *b*", "**a** _b_", "markdown"),
        ("max", "Markdown", "**a**b*c*d", "<b>a</b>b<i>c</i>d", "html"),
        ("max", "HTML", "a &amp; b", "a &amp; b", "html"),
        ("max", "Markdown", "a & b", "a & b", "markdown"),
        ("max", "Markdown", r"a \* b", "a * b", "html"),
        ("max", "Markdown", "**a**\n```\nb  c\n```", "<b>a</b>\n<pre>b  c</pre>", "html"),
        ("max", "Markdown", "> a", "<blockquote>a</blockquote>", "html"),
        ("max", "Markdown", "![a](https://a.example/)", '!<a href="https://a.example/">a</a>', "html"),
        ("max", "Markdown", "# a\nb", "**a**\nb", "markdown"),
        ("telegram", "Markdown", "### a\nb", "<b>a</b>\nb", "html"),
        ("telegram", "HTML", "a<h2>b</h2>c", "a\n<b>b</b>\nc", "html"),
        ("max", None, "**a**", "**a**", "plain"),
    ],
)
def test_each_platform_gets_its_own_dialect(
    platform: str, parse_mode: ParseMode | None, text: str, sent: str, markup: str
) -> None:
    plan = compiled(platform, Content(text=text, parse_mode=parse_mode)).plan

    assert plan is not None
    assert plan.parts == (TextPart(text=sent, markup=markup),)  # type: ignore[arg-type]


@pytest.mark.parametrize("parse_mode", ["HTML", "Markdown", None])
def test_a_link_that_follows_the_text_is_shown_as_it_is(parse_mode: ParseMode | None) -> None:
    link = "https://a.example/_b_?c=1&d=**2**"

    plan = compiled("telegram", Content(text="a", links=(link,), parse_mode=parse_mode)).plan

    assert plan is not None
    assert plan.parts == (TextPart(text=f"a\n\n{link}"),)


def test_a_template_brings_markup_of_its_own() -> None:
    template = {"template_ref": "t", "template_body": "<b>News</b>\n{{ text }}"}

    plan = compiled("telegram", Content(text="<i>a</i>", parse_mode="HTML"), **template).plan

    assert plan is not None
    assert plan.parts[0].text == "<b>News</b>\n<i>a</i>"


@pytest.mark.parametrize(
    ("settings", "flags", "preview"),
    [
        ({}, Flags(), Preview()),
        ({}, Flags(disable_preview=True), Preview(disabled=True)),
        ({"disable_preview": True, "preview_size": "large"}, Flags(), Preview(disabled=True)),
        (
            {"preview_size": "small", "preview_above": True},
            Flags(),
            Preview(url="https://a.example/b", size="small", above_text=True),
        ),
        ({"preview_above": True}, Flags(), Preview(above_text=True)),
    ],
)
def test_the_preview_is_as_post_and_channel_want_it(settings: dict[str, Any], flags: Flags, preview: Preview) -> None:
    text = "see https://a.example/b."
    plan = compiled("telegram", Content(text=text), flags, settings=settings).plan

    assert plan is not None
    assert plan.parts == (TextPart(text=text, preview=preview),)


def test_max_can_only_switch_a_preview_off() -> None:
    off = compiled("max", Content(text="a"), settings={"disable_preview": True}).plan
    small = compiled("max", Content(text="a"), settings={"preview_size": "small"}).plan

    assert off is not None
    assert small is not None
    assert (off.parts, off.notes) == ((TextPart(text="a", preview=Preview(disabled=True)),), ())
    assert small.parts == (TextPart(text="a"),)
    assert "preview" in small.notes[0]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("overflow", "shrink"),
        ("on_markup", 1),
        ("silent", "yes"),
        ("preview_size", "tiny"),
        ("upload_policy", {"image": "x"}),
        ("upload_policy", {"animation": "url_allowed"}),
        ("parse_mode", "html"),
    ],
)
def test_a_setting_that_means_nothing_is_told_by_name(name: str, value: object) -> None:
    [problem] = compiled("telegram", Content(text="a"), settings={name: value}).problems

    assert problem.code == "setting_unknown"
    assert problem.field.startswith(f"settings.{name}")


@pytest.mark.parametrize(
    ("platform", "rows", "code", "field"),
    [
        ("telegram", [9], "too_many_buttons", "buttons[0]"),
        ("telegram", [1] * 101, "too_many_buttons", "buttons"),
        ("telegram", [8] * 13, "too_many_buttons", "buttons"),
        ("max", [3, 4], "too_many_buttons", "buttons[1]"),
        ("max", [1] * 31, "too_many_buttons", "buttons"),
    ],
)
def test_more_buttons_than_there_is_room_for_are_told(platform: str, rows: list[int], code: str, field: str) -> None:
    buttons = tuple((Button("x", "https://a.example/"),) * row for row in rows)

    answer = compiled(platform, Content(text="a", buttons=buttons))

    assert [(problem.code, problem.field) for problem in answer.problems] == [(code, field)]


LINK = Button("Site", "https://a.example/")


def say(text: str = "Доставка") -> Button:
    return Button(text, kind="say")


def press(payload: str = "size.1.t.M", text: str = "M") -> Button:
    return Button(text, payload=payload, kind="callback")


def test_buttons_that_talk_to_the_bot_are_for_max_only() -> None:
    content = Content(text="a", buttons=((say(), press()),))

    telegram = compiled("telegram", content)

    assert compiled("max", content).problems == ()
    assert [(problem.code, problem.field) for problem in telegram.problems] == [
        ("buttons_unsupported", "buttons[0]"),
        ("buttons_unsupported", "buttons[0]"),
    ]


@pytest.mark.parametrize(
    ("row", "fits"),
    [
        ((say(),) * 7, True),
        ((say(),) * 8, False),
        ((say(), press(), LINK), True),
        ((say(), say(), press(), LINK), False),
    ],
    ids=["seven", "eight", "three with a link", "four with a link"],
)
def test_a_row_with_a_link_in_max_is_shorter(row: tuple[Button, ...], fits: bool) -> None:
    assert problems(compiled("max", Content(text="a", buttons=(row,)))) == ([] if fits else ["too_many_buttons"])


@pytest.mark.parametrize("button", [say(" "), say("a" * 129), press(""), press("p" * 1025)])
def test_a_button_that_max_would_refuse_is_told(button: Button) -> None:
    assert problems(compiled("max", Content(text="a", buttons=((button,),)))) == ["validation_failed"]


@pytest.mark.parametrize(("buttons", "version"), [(((LINK,),), 2), ((), 2), (((say(),),), 3), (((LINK, press()),), 3)])
def test_only_plans_with_new_kinds_of_buttons_have_a_new_version(
    buttons: tuple[tuple[Button, ...], ...], version: int
) -> None:
    """So the plans of posts keep their hashes."""
    plan = compiled("max", Content(text="a", buttons=buttons)).plan

    assert plan is not None
    assert plan.version == version
    assert msgspec.convert(msgspec.to_builtins(plan), Plan) == plan


@pytest.mark.parametrize(
    ("text", "url"), [(" ", "https://a.example/"), ("a", "javascript:x"), ("a", "http://intranet/"), ("a", "https://[")]
)
def test_a_button_that_leads_nowhere_is_told(text: str, url: str) -> None:
    answer = compiled("telegram", Content(text="a", buttons=((Button(text, url),),)))

    assert [(problem.code, problem.field) for problem in answer.problems] == [("validation_failed", "buttons[0]")]


def test_buttons_too_long_for_telegram_as_a_whole_are_told() -> None:
    row = (Button("x", f"https://a.example/{'y' * 2000}"),)

    assert problems(compiled("telegram", Content(text="a", buttons=(row,) * 5))) == ["too_many_buttons"]


def test_all_that_is_wrong_is_told_at_once() -> None:
    content = Content(
        text="<p>a</p>", parse_mode="HTML", media=(Medium(type="image"),), buttons=((Button("x", "nowhere"),),)
    )

    answer = compiled("telegram", content)

    assert [problem.field for problem in answer.problems] == ["text", "media[0]", "buttons[0]"]


@pytest.mark.parametrize("text", ["", " \n ", "<b> </b>"])
def test_a_post_without_anything_to_see_is_empty(text: str) -> None:
    assert problems(compiled("telegram", Content(text=text, parse_mode="HTML"))) == ["message_empty"]


@pytest.mark.parametrize("platform", ["telegram", "max"])
def test_a_setting_that_nobody_knows_stops_no_post(platform: str) -> None:
    result = compiled(platform, Content(text="a"), settings={"overflw": "split", "upload_polcy": {}})

    assert result.plan is not None
