"""Links and buttons as a reader can open them, and the link that a message previews."""

from collections.abc import Sequence

import pytest
from autopost_adapters.compilers import compile_content
from autopost_contracts.payload import Button, Content, Flags, ParseMode
from autopost_contracts.plan import Compiled, Profile, TextPart

PLATFORMS = ("telegram", "max")
UNREACHABLE = (
    "http://localhost/",
    "https://localhost:8000/a",
    "http://app.localhost/",
    "https://a.example:0/",
    "https://a.example:65536/",
    "https://a.example:99999/",
    "https://a..example/",
    "https://-.a!b.example/",
    "https://1.2.3/",
    "https://999.1.1.1/",
    "https://0x7f000001/",
    "https://[fe80::1%25eth0]/",
)
REACHABLE = (
    "https://a.example:65535/",
    "https://10.1.2.3/report",
    "https://xn--e1afmkfd.xn--p1ai/",
    "https://пример.рф/",
    "https://a_b.example./",
    "http://[2606:4700:4700::1111]/dns",
    "http://[2606:4700:4700::1111]:8080/",
)


def compiled(platform: str, content: Content, **settings: object) -> Compiled:
    return compile_content(content, Flags(), Profile(profile_hash="p", platform=platform, settings=settings))


def contents(url: str) -> Sequence[tuple[str, Content]]:
    return (
        ("text", Content(text=f'<a href="{url}">a</a>', parse_mode="HTML")),
        ("text", Content(text=f"[a]({url})", parse_mode="Markdown")),
        ("buttons[0]", Content(text="a", buttons=((Button("b", url),),))),
        ("links[0]", Content(text="a", links=(url,))),
    )


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("url", UNREACHABLE)
def test_a_link_or_button_that_no_reader_can_open_is_a_problem_of_its_field(platform: str, url: str) -> None:
    for field, content in contents(url):
        [problem] = compiled(platform, content).problems

        assert problem.field == field
        assert url[:20] in problem.message


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("url", REACHABLE)
def test_public_hosts_ports_and_ipv6_addresses_are_links(platform: str, url: str) -> None:
    for _, content in contents(url):
        assert compiled(platform, content).problems == ()


def previewed(
    text: str, parse_mode: ParseMode | None = None, **settings: object
) -> list[tuple[str | None, str | None]]:
    plan = compiled("telegram", Content(text=text, parse_mode=parse_mode), preview_size="large", **settings).plan
    assert plan is not None
    return [(part.preview.url, part.preview.size) for part in plan.parts if isinstance(part, TextPart)]


@pytest.mark.parametrize(
    ("text", "parse_mode", "url"),
    [
        ("see https://a.example/b, then https://c.example", None, "https://a.example/b"),
        ("(https://a.example/b)", None, "https://a.example/b"),
        ("http://intranet/ https://b.example", None, "https://b.example"),
        ("[a](https://a.example) https://b.example", "Markdown", "https://a.example"),
        ("https://b.example [a](https://a.example)", "Markdown", "https://b.example"),
        ("<code>https://c.example</code> <pre>https://d.example</pre> https://a.example", "HTML", "https://a.example"),
        ("<a href='tg://resolve?domain=a'>a</a> <a href='https://a.example'>b</a>", "HTML", "https://a.example"),
        ("(see https://a.example/b_(c)).", None, "https://a.example/b_(c)"),
        ("https://ru.wikipedia.org/wiki/Москва_(город)", "Markdown", "https://ru.wikipedia.org/wiki/Москва_(город)"),
        ("https://a.example/b*c|d[1]?e='f'!", None, "https://a.example/b*c|d[1]?e='f"),
        ("«https://a.example/b»…", None, "https://a.example/b"),
        ("*https://a.example*", None, "https://a.example"),
        ("HTTPS://A.EXAMPLE/B", None, "HTTPS://A.EXAMPLE/B"),
        ("[a](HTTPS://a.example) https://b.example", "Markdown", "HTTPS://a.example"),
    ],
)
def test_a_preview_with_a_size_names_the_first_link(text: str, parse_mode: ParseMode | None, url: str) -> None:
    """Telegram ignores the size of a preview without its link."""
    assert previewed(text, parse_mode) == [(url, "large")]


def test_a_text_without_a_link_has_no_preview_and_no_size() -> None:
    assert previewed("a.example is no link") == [(None, None)]


def test_each_message_of_a_split_text_previews_its_own_first_link() -> None:
    text = f"https://a.example {'x ' * 2000}\n\n{'y ' * 1000} https://b.example"

    assert previewed(text, overflow="split") == [("https://a.example", "large"), ("https://b.example", "large")]


INVISIBLE = ("\u200b", "\u200b\u2060\ufeff", "\u2800 \u3164", "\u200d\ufe0f", "\u00a0\u2003", "\u202e\u00ad")


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("parse_mode", [None, "HTML", "Markdown"])
@pytest.mark.parametrize("text", INVISIBLE)
def test_a_text_that_shows_nothing_is_a_problem(platform: str, parse_mode: ParseMode | None, text: str) -> None:
    marked = f"<b>{text}</b>" if parse_mode == "HTML" else text

    [problem] = compiled(platform, Content(text=marked, parse_mode=parse_mode)).problems

    assert (problem.code, problem.field) == ("message_empty", "text")


@pytest.mark.parametrize("text", INVISIBLE)
def test_a_button_that_shows_nothing_is_a_problem(text: str) -> None:
    [problem] = compiled("telegram", Content(text="a", buttons=((Button(text, "https://a.example"),),))).problems

    assert (problem.code, problem.field) == ("validation_failed", "buttons[0]")


def test_a_family_of_emoji_is_visible() -> None:
    assert compiled("telegram", Content(text="👨\u200d👩\u200d👧")).problems == ()
