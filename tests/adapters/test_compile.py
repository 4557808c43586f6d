"""What a text post becomes on each platform: pure, within limits, and accepted by the platform as it is."""

import pytest
from autopost_adapters.compilers import compile_content
from autopost_contracts.payload import Button, Content, Flags
from autopost_contracts.plan import Compiled, Profile
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adapters.conftest import Platform

WORDS = ["<b>жирно</b>", "<i>it</i>", "a &amp; b", "🦊", "text\n", "<code>x</code>"]
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


@pytest.mark.parametrize("text", ["<p>a</p>", "<b>a", "a</b>", "<b><i>a</b></i>", "<a>x</a>", "a<br/>b"])
@pytest.mark.parametrize("platform", LIMITS)
def test_markup_that_cannot_be_shown_fails_or_becomes_plain_as_the_channel_says(platform: str, text: str) -> None:
    content = Content(text=text, parse_mode="HTML")

    plain = compiled(platform, content, settings={"on_markup": "plain"}).plan

    assert problems(compiled(platform, content)) == ["markup_unsupported"]
    assert plain is not None
    assert plain.parts[0].markup == "plain"
    assert "<" not in plain.parts[0].text


def test_links_that_the_text_lacks_follow_it() -> None:
    content = Content(text="see https://a.example/", links=("https://a.example/", "https://b.example/?x=1&y=2"))

    plan = compiled("telegram", content).plan

    assert plan is not None
    assert plan.parts[0].text == "see https://a.example/\n\nhttps://b.example/?x=1&y=2"


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
        ("{{ text", "template_failed"),
        (None, "template_missing"),
    ],
)
def test_a_template_that_runs_wild_or_is_missing_is_a_problem_of_its_channel(body: str | None, code: str) -> None:
    result = compiled("telegram", Content(text="a" * 100), template_ref="t", template_body=body)

    assert problems(result) == [code]


def test_too_many_buttons_are_refused_by_name() -> None:
    row = tuple(Button(str(number), "https://a.example/") for number in range(4))

    assert problems(compiled("max", Content(text="a", buttons=(row,)))) == ["too_many_buttons"]
    assert problems(compiled("telegram", Content(text="a", buttons=(row,)))) == []


def test_a_platform_nobody_knows_is_a_problem_not_an_error() -> None:
    assert problems(compiled("pigeon", Content(text="a"))) == ["platform_unknown"]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    words=st.lists(
        st.sampled_from(["<b>жирно</b>", "<i>it</i>", "a &amp; b", "🦊", "text\n", "<code>x</code>"]), max_size=30
    ),
    is_html=st.booleans(),
    silent=st.booleans(),
)
async def test_whatever_compiles_is_accepted_as_it_is(
    platform: Platform, words: list[str], is_html: bool, silent: bool
) -> None:
    content = Content(text=" ".join(words).strip() or "x", parse_mode="HTML" if is_html else None)
    plan = compiled(platform.name, content, Flags(silent=silent)).plan

    assert plan is not None
    for part in plan.parts:
        assert type(await platform.send(part)).__name__ == "Accepted"
