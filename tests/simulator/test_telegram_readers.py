"""The simulator reads HTML and MarkdownV2 as an independent reader does, right or wrong, word for word.

2,000 random texts of each with ``AUTOPOST_FULL=1``. Entities that the server finds by itself are left out.
"""

import random
from collections.abc import Callable
from typing import Any

import pytest
from adapters.readers import telegram_html, telegram_markdown_v2
from adapters.readers.authors import post
from adapters.readers.entities import SPLITTABLE, Read, Refused, utf16
from harness.full import FULL

TEXTS = 2_000 if FULL else 200
AUTOMATIC = {"url", "hashtag", "mention", "email", "bot_command", "cashtag", "phone_number", "bank_card"}
Found = tuple[str, int, int, str]
VALUES = ("url", "language", "custom_emoji_id", "unix_time")

HTML = [
    "<b>", "</b>", "<i>", "</i>", "<u>", "</u>", "<s>", "</s>", "<code>", "</code>", "<pre>", "</pre>",
    "<a href='http://a.b/'>", "</a>", "<blockquote>", "</blockquote>", "<blockquote expandable>", "<tg-spoiler>",
    "</tg-spoiler>", "<span class='tg-spoiler'>", "</span>", "</>", "<B >", "</b >", "<a href=\"tg://user?id=42\">",
    "<a href='localhost'>", "<a>", "<code class='language-py'>", "&amp;", "&lt;", "&ltx", "&quota", "&#128512;",
    "&#x1f600;", "&#0;", "&nbsp;", "<b x=y>", "<b x='>'>", "<b x=/>", "<p>", "<", "<b",
    "<tg-emoji emoji-id='5368324170671202286'>", "</tg-emoji>", "<tg-time unix='1647531900' format='wDT'>",
    "</tg-time>", "<b />",
]  # fmt: skip
V2 = [
    "*", "_", "__", "~", "||", "`", "```", "[", "](http://a.b/)", "](tg://user?id=42)", "]", "(", ")", "![",
    "](tg://emoji?id=5368324170671202286)", "](tg://time?unix=1647531900&format=r)", ">", "\n>", "**>", "\\*", "\\.",
    "\\\\", "!", ".", "-", "```py\n", "\n```", "#", "+", "=", "{", "|",
]  # fmt: skip
PLAIN = [
    "a",
    "Привет",
    "x y",
    " ",
    "\n",
    "\n\n",
    "🦊",
    "👩‍👩‍👧",
    "🇩🇪",
    "שלום",
    "\u200b",
    "\u00a0",
    "\t",
    "\r\n",
    "  ",
    "é",
]
MARKS = {"HTML": HTML, "MarkdownV2": V2}
EMOJI, TIME = "emoji-id='5368324170671202286'", "unix='1647531900' format='wDT'"
PAIRS = {
    "HTML": [
        *((f"<{tag}>", f"</{tag}>") for tag in ("b", "i", "s", "code", "pre", "blockquote", "tg-spoiler")),
        ("<u>", "</>"),
        ("<code class='language-py'>", "</code>"),
        ("<a href='http://a.b/'>", "</a>"),
        ("<a href='http://c.d/?x=é y'>", "</a>"),
        (f"<tg-emoji {EMOJI}>", "</tg-emoji>"),
        (f"<tg-time {TIME}>", "</tg-time>"),
    ],
    "MarkdownV2": [
        *((mark, mark) for mark in ("*", "_", "__", "~", "||", "`")),
        ("```py\n", "```"),
        ("[", "](http://a.b/)"),
        ("\n>", "\n"),
        ("\n>", "||\n"),
        ("![", "](tg://emoji?id=5368324170671202286)"),
        ("![", "](tg://time?unix=1647531900)"),
    ],
}


def soup(mode: str, luck: random.Random) -> str:
    """Marks at random; half of the time in pairs, so that more than one in a hundred is right."""
    pieces = [luck.choice(luck.choice([MARKS[mode], PLAIN, PLAIN])) for _ in range(luck.randint(1, 12))]
    if luck.random() < 0.5:
        return "".join(pieces)
    open_: list[str] = []
    paired = [piece if piece in PLAIN else opened_or_closed(mode, luck, open_) for piece in pieces]
    return "".join([*paired, *reversed(open_)])


def opened_or_closed(mode: str, luck: random.Random, open_: list[str]) -> str:
    if open_ and luck.random() < 0.4:
        return open_.pop()
    begin, end = luck.choice(PAIRS[mode])
    open_.append(end)
    return begin


def written(mode: str, seed: int) -> str:
    luck = random.Random(f"{mode} {seed}")
    if mode == "HTML" and luck.random() < 0.3:
        return post("telegram", "HTML", seed).source
    return soup(mode, luck)


def joined(entities: list[Found]) -> list[Found]:
    """Bold and its like in one piece again, where an entity that the server found cut it."""
    whole: list[Found] = []
    for kind, offset, length, value in sorted(entities):
        before = next((one for one in reversed(whole) if one[0] == kind), None)
        if kind in SPLITTABLE and before and before[1] + before[2] == offset:
            whole[whole.index(before)] = (kind, before[1], before[2] + length, value)
        else:
            whole.append((kind, offset, length, value))
    return sorted(whole)


def ours(read: Callable[[str], Read], source: str) -> Any:
    try:
        found = read(source)
    except Refused as refused:
        return f"Bad Request: {refused}"
    return found.text, joined(utf16(found))


def theirs(body: dict[str, Any]) -> Any:
    if not body["ok"]:
        return body["description"]
    message = body["result"]
    entities = [
        (one["type"], one["offset"], one["length"], value_of(one))
        for one in message.get("entities", [])
        if one["type"] not in AUTOMATIC
    ]
    return message["text"], joined(entities)


def value_of(entity: dict[str, Any]) -> str:
    if "user" in entity:
        return str(entity["user"]["id"])
    return next((str(entity[name]) for name in VALUES if name in entity), "")


@pytest.mark.time_limit(900)
@pytest.mark.parametrize(("mode", "read"), [("HTML", telegram_html.read), ("MarkdownV2", telegram_markdown_v2.read)])
async def test_the_simulator_reads_a_text_as_an_independent_reader_does(client, mode, read):
    misses = []
    for seed in range(TEXTS):
        source = written(mode, seed)
        answer = theirs((await client.send(source, parse_mode=mode)).body)
        if (meant := ours(read, source)) != answer:
            misses.append(f"{seed}: {source!r}\nreader    {meant}\nsimulator {answer}")

    assert not misses, "\n\n".join([f"{len(misses)} of {TEXTS}", *misses])
