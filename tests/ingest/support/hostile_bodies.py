"""Requests that are meant to hold ingest up. A new one goes into ``REQUESTS``; the loop budget then covers it."""

import json
from collections.abc import Callable

from harness.hostile_texts import HTML, MARKDOWN, PLAIN, Text
from msgspec import Struct

LIMIT = 65_536
BODY = 256 * 1024
LARGE_BODY = 4 * 1024 * 1024
SMALL_BODY = 64 * 1024
"""As long as one that is read by the loop itself may be."""


class Hostile(Struct, frozen=True, kw_only=True):
    """One request of a sender who knows a secret. ``make`` is called when it is sent."""

    make: Callable[[], bytes]
    path: str = "/v1/posts"


def _post(**fields: object) -> Callable[[], bytes]:
    return lambda: json.dumps({"text": "a", **fields}).encode()


def _text(texts: dict[str, Text], name: str, size: int = LIMIT, parse_mode: str | None = None) -> Hostile:
    return Hostile(make=lambda: json.dumps({"text": texts[name](size), "parse_mode": parse_mode}).encode())


def _list_of(value: str, size: int) -> Hostile:
    return Hostile(make=lambda: b'{"text": "a", "meta": {"a": [%s]}}' % ",".join([value] * (size // 4)).encode())


def _small_list_of(value: str, path: str = "/v1/posts") -> Hostile:
    """As many as a body may have that is read by the loop itself as far as its length goes."""
    before, after = b'{"text": "a", "meta": {"a": [', b"]}}"
    count = (SMALL_BODY - len(before + after) + 1) // (len(value) + 1)
    return Hostile(make=lambda: before + ",".join([value] * count).encode() + after, path=path)


REQUESTS: dict[str, Hostile] = {
    "combining marks in a row": Hostile(make=_post(text="a" + "\u0301\u0323" * 40_000)),
    "combining marks in a caption": Hostile(
        make=_post(media=[{"type": "photo", "file_id": "x", "caption": "a" + "\u0301\u0323" * 40_000}])
    ),
    "far too long": Hostile(make=_post(text="x" * 250_000)),
    "long captions": Hostile(
        make=_post(media=[{"type": "photo", "file_id": "x", "caption": "👩\u200d" * 30_000}] * 8, parse_mode="HTML")
    ),
    "regional indicators": _text(PLAIN, "regional indicators"),
    "combining marks": _text(PLAIN, "combining marks"),
    "sentences": _text(PLAIN, "sentences"),
    "looks around code": _text(HTML, "looks around code", parse_mode="HTML"),
    "nested tags": _text(HTML, "nested tags of two", parse_mode="HTML"),
    "bold tags": _text(HTML, "bold tags", parse_mode="HTML"),
    "stars and a letter": _text(MARKDOWN, "stars and a letter", parse_mode="Markdown"),
    "star and underscore": _text(MARKDOWN, "star and underscore", parse_mode="Markdown"),
    "backtick runs": _text(MARKDOWN, "backtick runs", parse_mode="Markdown"),
    "headings": _text(MARKDOWN, "headings", parse_mode="Markdown"),
    **{
        f"{character!r} in {parse_mode}": _text({"it": lambda size, it=character: it * size}, "it", LIMIT, parse_mode)
        for character in ("\r", "\n", "\t", "\u2028")
        for parse_mode in ("HTML", "Markdown")
    },
    "a small one of much markup": _text(MARKDOWN, "star and underscore", 2_000, "Markdown"),
    "a small one of many stars": _text(MARKDOWN, "stars and a letter", 1_999, "Markdown"),
    "a small one of indicators": _text(PLAIN, "regional indicators", 8_000),
    "hosts of many letters": Hostile(make=_post(links=[f"https://{'ö🦊' * 900}{n}.example" for n in range(20)])),
    "paths of many letters": Hostile(
        make=_post(buttons=[[{"text": "a", "url": f"https://a.example/{'🦊' * 500}{n}"}] for n in range(100)])
    ),
    "numbers": _list_of("0", BODY),
    "lists": _list_of("[]", BODY),
    "strings": _list_of('""', BODY),
    "numbers in a large body": _list_of("0", LARGE_BODY),
    "lists in a large body": _list_of("[]", LARGE_BODY),
    "strings in a large body": _list_of('"ab"', LARGE_BODY),
    **{f"a small body of {value}": _small_list_of(value) for value in ("[]", "[[]]", "[[[[]]]]", '[""]', "0", "{}")},
    "as many lists as allowed": _list_of("[]", 4 * 49_000),
    "open lists": Hostile(make=lambda: b"[" * BODY),
    "keys": Hostile(make=lambda: json.dumps({str(n): 0 for n in range(20_000)}).encode()),
    "secrets to be taken out of a refused body": Hostile(make=lambda: b'{"token":"' * 30_000),
    "a dry run of much markup": Hostile(
        make=_text(MARKDOWN, "stars and a letter", parse_mode="Markdown").make, path="/v1/posts?dry_run=1"
    ),
    **{
        f"a small update of {value}": _small_list_of(value, "/v1/bot/max")
        for value in ("[]", "[[]]", "[[[[]]]]", "0", '{"a":0}')
    },
    "lists in an update": Hostile(make=_list_of("[]", LARGE_BODY).make, path="/v1/bot/max"),
}
