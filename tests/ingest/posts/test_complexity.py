"""Every function that reads what strangers wrote takes time in step with its length, up to the size that is allowed."""

import json
from collections.abc import Callable
from functools import partial

import pytest
from autopost_adapters.compilers import compile_content
from autopost_adapters.markup import max_markdown
from autopost_adapters.markup.html import read_html
from autopost_adapters.markup.links import wrong_address
from autopost_adapters.markup.markdown import read_markdown
from autopost_adapters.markup.nesting import nest
from autopost_contracts.payload import Content, Flags, ParseMode, PostRequest
from autopost_contracts.plan import Profile
from autopost_ingest.posts.normalize import canonical_url, normalize
from autopost_ingest.posts.text_limits import LONGEST_TEXT, has_too_many_marks
from autopost_ingest.request.bot_update import read_update
from autopost_ingest.request.post_request import read_post
from autopost_ingest.staging.file_name import harmless
from autopost_runtime.secrets.redaction import redact
from harness.growth import MOST, growth
from harness.hostile_texts import HTML, MARKDOWN, PLAIN, TEXTS, Text

BODY = 256 * 1024
LINK = 2048
HEADER = 8190


def normalized(text: str, parse_mode: ParseMode | None) -> object:
    return normalize(PostRequest(text=text, parse_mode=parse_mode))


def compiled(text: str, parse_mode: ParseMode | None, platform: str, **settings: str) -> object:
    profile = Profile(profile_hash="p", platform=platform, settings={"on_markup": "plain", **settings})
    return compile_content(Content(text=text, parse_mode=parse_mode), Flags(), profile)


def filled(text: str, parse_mode: ParseMode | None) -> object:
    body = "{{ text | upcase | strip | replace: 'a', 'b' }} {% for tag in tags %}{{ tag }}{% endfor %}"
    profile = Profile(
        profile_hash="p", platform="telegram", settings={"overflow": "split"}, template_ref="t", template_body=body
    )
    return compile_content(Content(text=text, parse_mode=parse_mode), Flags(tags=("a", "b")), profile)


READERS: dict[str, tuple[Callable[[str], object], dict[str, Text], int]] = {
    "normalize": (partial(normalized, parse_mode=None), PLAIN, LONGEST_TEXT),
    "normalize HTML": (partial(normalized, parse_mode="HTML"), HTML | PLAIN, LONGEST_TEXT),
    "normalize Markdown": (partial(normalized, parse_mode="Markdown"), MARKDOWN | PLAIN, LONGEST_TEXT),
    "has_too_many_marks": (has_too_many_marks, PLAIN, LONGEST_TEXT),
    "read_html": (lambda text: nest(read_html(text)[0]), HTML, LONGEST_TEXT),
    "read_markdown": (lambda text: nest(read_markdown(text)[0]), MARKDOWN, LONGEST_TEXT),
    "escape Markdown": (max_markdown.escape, MARKDOWN | PLAIN, LONGEST_TEXT),
    "template": (partial(filled, parse_mode=None), PLAIN, LONGEST_TEXT),
    "canonical_url": (canonical_url, TEXTS, LINK),
    "canonical_url of a host": (lambda text: canonical_url(f"https://{text}"), TEXTS, LINK),
    "wrong_address": (wrong_address, TEXTS, LONGEST_TEXT),
    "harmless file name": (harmless, PLAIN, HEADER),
    "redact": (redact, TEXTS, LONGEST_TEXT),
    "read_post": (lambda text: read_post(json.dumps({"text": text}).encode()), PLAIN, BODY),
    "read_update": (lambda text: read_update(json.dumps({"text": text}).encode()), PLAIN, BODY),
    **{
        f"compile {parse_mode or 'text'} for {platform}, {overflow}": (
            partial(compiled, parse_mode=parse_mode, platform=platform, overflow=overflow),
            texts,
            LONGEST_TEXT,
        )
        for parse_mode, texts in ((None, PLAIN), ("HTML", HTML), ("Markdown", MARKDOWN))
        for platform in ("telegram", "max")
        for overflow in (("split", "truncate") if parse_mode is None else ("split",))
    },
}


@pytest.mark.parametrize("reader", READERS)
def test_twice_the_text_takes_about_twice_the_time(reader: str) -> None:
    function, texts, size = READERS[reader]

    grown = {name: growth(function, make, size) for name, make in texts.items()}

    assert {name: times for name, times in grown.items() if times > MOST} == {}


def _list_of(value: str) -> Text:
    return lambda size: '{"text": "a", "meta": {"a": [' + ",".join([value] * (size // (len(value) + 1))) + "]}}"


BODIES: dict[str, Text] = {
    "numbers": _list_of("0"),
    "fractions": _list_of("1.5"),
    "long numbers": _list_of("1" * 19),
    "endless fractions": _list_of("1e999"),
    "lists": _list_of("[]"),
    "objects": _list_of("{}"),
    "strings": _list_of('""'),
    "half surrogates": _list_of('"\\ud800"'),
    "escapes": _list_of('"\\n\\u0041"'),
    "open lists": lambda size: "[" * size,
    "nested lists": lambda size: "[" * (size // 2) + "]" * (size // 2),
    "open objects": lambda size: '{"a":' * (size // 5),
    "keys": lambda size: "{" + ",".join(f'"k{number}":0' for number in range(size // 10)) + "}",
    "one key again and again": lambda size: "{" + ",".join(['"k":0'] * (size // 6)) + "}",
    "unknown fields": lambda size: json.dumps({"x" * size: 1}),
    "spaces": lambda size: "{" + " " * size,
    "buttons": lambda size: json.dumps(
        {"text": "a", "buttons": [[{"text": "a", "url": "https://a.b"}] * (size // 40)]}
    ),
}


@pytest.mark.parametrize("make", BODIES.values(), ids=BODIES)
@pytest.mark.parametrize("reader", [read_post, read_update])
def test_a_body_twice_as_long_takes_about_twice_the_time(reader: Callable[[bytes], object], make: Text) -> None:
    assert growth(reader, lambda size: make(size).encode(), BODY) <= MOST
