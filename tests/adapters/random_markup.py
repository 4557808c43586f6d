"""Random well-nested marked-up texts."""

from autopost_adapters.markup.builder import Builder
from autopost_adapters.markup.marked import NAMES, Kind, Marked, tidy
from autopost_adapters.markup.nesting import nest
from hypothesis import strategies as st

SCRAPS = [
    "a", "Привет", "x y", "two\nlines", "par\n\nagraph", "1. First!", "<", "&", '"', "*", "_", "**", "snake_case", "`",
    "[", "](", ">", "#", "\\", "~~", "++", "^^", "||", "|", "🦊", "👩‍👩‍👧", "🇩🇪", "é", "\u200b", "(b)", "&amp;",
    "...", "—", " ", "\n", "\r\n", "\u0301", "word ", "\n\n",
]  # fmt: skip
ADDRESSES = ["https://a.example/", "https://a.example/?b=1&c_d=2", 'http://b.example/"x"', "https://c.example/(d)"]

_VALUES: dict[Kind, list[str]] = {
    "link": ADDRESSES,
    "pre": ["", "python", "c++"],
    "custom_emoji": ["5368324170671202286"],
    "time": ["1647531900"],
}
_CLOSE = ("close", "")


def marked_texts(kinds: frozenset[Kind] = frozenset(NAMES), max_size: int = 30) -> st.SearchStrategy[Marked]:
    """Scraps of text, and entities that begin and end between them; what is refused for its nesting is left out."""
    opens = [(kind, value) for kind in sorted(kinds) for value in _VALUES.get(kind, [""])]
    scraps = [("text", scrap) for scrap in SCRAPS]
    steps = st.sampled_from(scraps) | st.sampled_from(opens) | st.just(_CLOSE)
    built = st.lists(steps, min_size=1, max_size=max_size).map(_built)
    return built.filter(lambda marked: bool(marked.text))


def _built(steps: list[tuple[str, str]]) -> Marked:
    builder = Builder()
    open_: list[tuple[Kind, str, int]] = []
    for name, value in [*steps, *[_CLOSE] * len(steps)]:
        if name == "text":
            builder.add(value)
        elif name in NAMES:
            open_.append((name, value, builder.here))
        elif open_:
            kind, told, since = open_.pop()
            builder.cover(kind, since, told)
    marked = builder.marked()
    nested, refused = nest(marked)
    return tidy(marked.text, ()) if refused else nested
