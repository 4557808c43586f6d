"""Generated bodies: valid posts, posts with one grammatical change, and broken bytes."""

import json
import random
from collections.abc import Callable
from typing import Any

Post = dict[str, Any]

MOST_REPEATED = 1_000
"""Or what is repeated three times would be a body that the limit on bodies keeps out anyway."""
STORED_REF = "sha256:" + "1" * 64
"""A test may store something under it; nothing is under others."""
SOURCES = (
    *(("file_id", "x1"), ("attachment_token", "x1"), ("blob_ref", STORED_REF), ("blob_ref", "sha256:" + "0" * 64)),
    *(("url", "https://a.example/x.png"), ("url", "https://u:p@a.example/x.png"), ("url", "http://[::1]/a b?c#d")),
)
MOMENTS = (
    *(
        "2026-12-01T10:00:00+03:00",
        "2100-02-28T23:59:59.999999999Z",
        "2000-01-01T00:00:00Z",
        "2199-12-31T23:59:59-14:00",
    ),
    *(
        "2026-12-01T10:00:00",
        "0001-01-01T00:00:00+23:59",
        "9999-12-31T23:59:59-14:00",
        "2026-12-01",
        "2026-12-01T24:00:00Z",
    ),
)

NASTY: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1.5, 10**18, 10**19, 1e308, "", " ", "a" * 5000, "\x00", "\ud800", "\u202e", "😀", "é"),
    *([], {}, [[]], [None], [{}], {"a": None}, {"": {"": {}}}, "2026-01-01T00:00:00Z", "9999-12-31T23:59:59+14:00"),
    *(
        "0001-01-01T00:00:00+23:59",
        "2026-02-30T00:00:00Z",
        "9999-12-31T23:59:59-14:00",
        "https://a.example",
        "http://[::1",
        "javascript:alert(1)",
    ),
    *("http://a.example:99999/", "//x", "<b>", "</b><i>", "[a](b", "**", "sha256:" + "0" * 64, "{{ text }}", "\\u0000"),
)
FIELDS = (
    *("text", "parse_mode", "links", "media", "buttons", "tags", "routing", "disable_preview", "silent", "protect"),
    *("source_ref", "scheduled_for", "meta", "workspace_id", "unknown"),
)


class Mutator:
    """With ``refs`` every body has a source_ref like no other, if it can be read at all."""

    def __init__(self, seed: int, *, refs: bool = False) -> None:
        self._random = random.Random(seed)
        self._refs = refs

    def body(self) -> bytes:
        """A fifth as they are or nearly so, half and more changed by grammar, the rest broken bytes."""
        post = self._post()
        kind = self._random.random()
        if kind < 0.15:
            return self._encoded(post)
        if kind < 0.75:
            for _ in range(self._random.choice((1, 1, 1, 2, 3))):
                post = self._mutated(post)
            return self._spelled(self._encoded(post)) if self._random.random() < 0.2 else self._encoded(post)
        return self._broken(self._encoded(post))

    def _post(self) -> Post:
        pick = self._random
        post: Post = {"text": self._text()}
        if pick.random() < 0.4:
            post["parse_mode"] = pick.choice(("HTML", "Markdown"))
        if pick.random() < 0.3:
            post["links"] = [f"https://a.example/{pick.randrange(100)}" for _ in range(pick.randrange(4))]
        if pick.random() < 0.3:
            post["buttons"] = [self._row() for _ in range(pick.randrange(4))]
        if pick.random() < 0.3:
            post["media"] = [self._medium() for _ in range(pick.randrange(1, 5))]
        if pick.random() < 0.3:
            post["tags"] = [pick.choice(("news", "Sale", "ночь")) for _ in range(pick.randrange(4))]
        if pick.random() < 0.2:
            post["routing"] = {"channel_tags": ["demo"], "channels": []}
        if pick.random() < 0.2:
            post["meta"] = {"a": [1, {"b": "c"}], "n": pick.random()}
        if pick.random() < 0.2:
            post["scheduled_for"] = pick.choice((*MOMENTS[:4], *MOMENTS[:4], *MOMENTS))
        if pick.random() < 0.2:
            post["silent"] = pick.random() < 0.5
        return post

    def _text(self) -> str:
        words = (
            "hello",
            "мир",
            "<b>bold</b>",
            "*x*",
            "[a](https://a.example)",
            "&amp;",
            "\n",
            "😀",
            "&lt;",
            "`c`",
            "<i>",
        )
        return " ".join(self._random.choice(words) for _ in range(self._random.randrange(1, 20)))

    def _row(self) -> Any:
        button = {"text": "open", "url": "https://a.example"}
        return button if self._random.random() < 0.5 else [button] * self._random.randrange(1, 4)

    def _medium(self) -> Post:
        kind = self._random.choice(("image", "photo", "video", "animation", "audio", "file", "document"))
        source, value = self._random.choice(SOURCES[:3] * 3 + SOURCES[4:5] * 3 + SOURCES)
        return {"type": kind, source: value} | ({"caption": self._text()} if self._random.random() < 0.3 else {})

    def _mutated(self, post: Post) -> Post:
        changes: tuple[Callable[[Post], None], ...] = (
            *(
                self._replace,
                self._replace,
                self._replace_deep,
                self._replace_deep,
                self._drop,
                self._repeat,
                self._nest,
            ),
        )
        copy: Post = json.loads(json.dumps(post))
        self._random.choice(changes)(copy)
        return copy

    def _replace(self, post: Post) -> None:
        post[self._random.choice(FIELDS)] = self._random.choice(NASTY)

    def _replace_deep(self, post: Post) -> None:
        holder: Any = post
        while True:
            keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
            if not keys:
                return
            key = self._random.choice(keys)
            if not isinstance(holder[key], dict | list) or self._random.random() < 0.3:
                holder[key] = self._random.choice(NASTY)
                return
            holder = holder[key]

    def _drop(self, post: Post) -> None:
        post.pop(self._random.choice(list(post) or [""]), None)

    def _repeat(self, post: Post) -> None:
        for name in ("links", "buttons", "media", "tags"):
            if isinstance(post.get(name), list):
                post[name] = (post[name] * self._random.choice((2, 20, 120)))[:MOST_REPEATED]

    def _nest(self, post: Post) -> None:
        value: Any = "x"
        for _ in range(self._random.choice((5, 29, 30, 31, 40, 200))):
            value = [value] if self._random.random() < 0.5 else {"k": value}
        post["meta"] = {"deep": value}

    def _encoded(self, post: Post) -> bytes:
        if self._refs:
            post = {**post, "source_ref": self._random.randbytes(16).hex()}
        text = json.dumps(post, ensure_ascii=self._random.random() < 0.5)
        return text.encode(errors="surrogatepass")

    def _spelled(self, body: bytes) -> bytes:
        """The same tokens, or one more of them."""
        old, new = self._random.choice(
            (
                *(
                    (b'"text"', rb'"t\u0065xt"'),
                    (b'"text":', b'"text": "x", "text":'),
                    (b"{", b"{ \t\r\n"),
                    (b":", b" : "),
                ),
                *((b"true", b"NaN"), (b"1", b"1" * 50), (b"}", b"}}"), (b"[", b"[,"), (b'"a"', b'"a": -Infinity, "a"')),
                *((b"e", rb"\u0000"), (b"o", rb"\ud83d"), (b"{", b"\xef\xbb\xbf{"), (b'"', b"'"), (b"0", b"1e999")),
            )
        )
        return body.replace(old, new, self._random.choice((1, 1, -1)))

    def _broken(self, body: bytes) -> bytes:
        pick, at = self._random, self._random.randrange(len(body) + 1)
        match pick.randrange(6):
            case 0:
                return body[:at]
            case 1:
                return body[:at] + pick.randbytes(pick.randrange(1, 8)) + body[at:]
            case 2:
                return body[:at] + body[at + pick.randrange(1, 8) :]
            case 3:
                return pick.randbytes(pick.randrange(200))
            case 4:
                return body + body[at:]
            case _:
                return b"[" * pick.choice((40, 2000, 100_000)) + body
