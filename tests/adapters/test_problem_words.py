"""What a problem quotes of a post: little of it, and neither a secret nor anybody's number or address."""

from typing import Any

import pytest
from autopost_adapters.compilers import compile_content
from autopost_adapters.planning.compile_post import MOST_PROBLEMS
from autopost_contracts.payload import Button, Content, Flags, Medium
from autopost_contracts.plan import Problem, Profile

SECRETS = ("hush", "79001234567", "bob@example.com")
ADDRESS = "ftp://ann:hush@example.com/?token=hush&call=+79001234567&mail=bob@example.com"
PLATFORMS = ("telegram", "max")
LONGEST = 240


def problems(platform: str, content: Content, fields: dict[str, Any] | None = None, **profile: Any) -> list[Problem]:
    profiled = Profile(profile_hash="x", platform=platform, **profile)
    return list(compile_content(content, Flags(fields=fields or {}), profiled).problems)


WRONG: dict[str, Content] = {
    "a link in HTML": Content(text=f'<a href="{ADDRESS}">a</a>', parse_mode="HTML"),
    "a link in Markdown": Content(text=f"[a]({ADDRESS})", parse_mode="Markdown"),
    "a tag": Content(text="<token-hush-1234567-bot>a", parse_mode="HTML"),
    "a long tag": Content(text=f"<{'x' * 50_000}>a", parse_mode="HTML"),
    "the end of a long tag": Content(text=f"a</{'x' * 50_000}>", parse_mode="HTML"),
    "a long tag that closes itself": Content(text=f"a<{'x' * 50_000}/>", parse_mode="HTML"),
    "a bracket": Content(text="a <b@hush token=hush", parse_mode="HTML"),
    "a caption": Content(
        type="media",
        parse_mode="HTML",
        media=(Medium(type="image", blob_ref=f"sha256:{'0' * 64}", caption=f'<a href="{ADDRESS}">a</a>'),),
    ),
    "a button": Content(text="a", buttons=((Button("a", ADDRESS),),)),
    "many buttons": Content(text="a", buttons=((Button("a", ADDRESS),),) * 99),
    "what cannot be cut": Content(text=f'<a href="https://example.com">{ADDRESS * 100}</a>', parse_mode="HTML"),
}


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("name", WRONG)
def test_a_problem_shows_no_secret_and_nobody_and_little_of_the_post(platform: str, name: str) -> None:
    found = problems(platform, WRONG[name], settings={"overflow": "split"})

    assert found
    for problem in found:
        if name not in ("a tag", "a bracket"):  # what has no form of a secret is only short
            assert [secret for secret in SECRETS if secret in problem.message] == []
        assert len(problem.message) <= LONGEST


@pytest.mark.parametrize(
    ("body", "defaults"),
    [
        ("{{ title | divided_by: 0 }}", {"title": ADDRESS}),
        ("{{ 1 | divided_by: title }}", {"title": ADDRESS}),
        ("{{ text | split: title | map: title | sum: title }}", {"title": ADDRESS}),
        (f"{{{{ text | {'x' * 5000} }}}}", {}),
        (f"{{% {ADDRESS} %}}", {}),
    ],
)
def test_a_template_that_fails_shows_neither_its_values_nor_itself(body: str, defaults: dict[str, Any]) -> None:
    content = Content(text=ADDRESS)

    found = problems(
        "telegram",
        content,
        defaults,
        template_ref="news",
        template_body=body,
        template_defaults=dict.fromkeys(defaults),
    )

    assert [secret for problem in found for secret in SECRETS if secret in problem.message] == []
    assert all(len(problem.message) <= LONGEST for problem in found)


def test_a_setting_that_means_nothing_is_shown_in_short() -> None:
    [found] = problems("telegram", Content(text="a"), settings={"overflow": ADDRESS * 1000})

    assert [secret for secret in SECRETS if secret in found.message] == []
    assert len(found.message) <= LONGEST


def test_a_post_with_thousands_of_faults_tells_some_of_them() -> None:
    rows = tuple((Button("a", ADDRESS),) for _ in range(5000))

    assert len(problems("telegram", Content(text="a", buttons=rows))) == MOST_PROBLEMS
