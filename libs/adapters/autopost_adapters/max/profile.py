"""MAX's limits for text. How it counts is not documented, so the strictest reading is taken: UTF-16 units of what is
sent, markup included."""

from autopost_adapters.text import TextLimits

TAGS = frozenset("i em b strong del s ins u a pre code mark blockquote h1".split())  # noqa: SIM905  reads as the list it is

TEXT = TextLimits(
    platform="max",
    text=4000,
    tags=TAGS,
    buttons_per_row=3,  # rows with links; rows of callbacks may have seven
    rows=30,
    silent=False,  # a channel refuses notify: false
    count=lambda sent, _seen: len(sent.encode("utf-16-le")) // 2,
)
