"""Telegram's limits for text. It counts code points of what is seen, after the markup is parsed."""

from autopost_adapters.text import TextLimits

TAGS = frozenset(
    "a b strong i em u ins s strike del code pre blockquote tg-spoiler span tg-emoji tg-time".split()  # noqa: SIM905
)

TEXT = TextLimits(
    platform="telegram",
    text=4096,
    tags=TAGS,
    buttons_per_row=8,
    rows=100,
    silent=True,
    count=lambda _sent, seen: len(seen),
)
