"""Random posts of random authors, each with what the author means."""

import html
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import count

from adapters.readers import markdown
from adapters.readers.entities import Entity, Read, shown

WORDS = [
    "word", "Привет", "мир!", "snake_case", "a<b", "x&y", "&amp;", "&lt", "5*3", "[x]", "(y)", "1.", "#one",
    "back\\slash", "a|b", "~", "+1", "^", '"q"', "'s", "🦊", "👩‍👩‍👧", "🏳️‍🌈", "🇩🇪🇷🇺", "👍🏽", "1️⃣", "é", "й", "שלום",
    "مرحبا", "\u200fעברית", "نص\u200e", "«ёлочки»", "$5.00", "100%", "—", "q\u0323", "日本語", "𝔘𝔫𝔦", "end.", "a_b_c",
    "**", "__init__", "`", "=", "{z}", "!", "\u00a0", "тон\u2009кий",
]  # fmt: skip
ADDRESSES = [
    "https://a.example/", "https://a.example/?b=1&c_d=2", "http://b.example/path_(x)",
    "https://c.example/?q=«x»&copy=2#a", "https://пример.рф/путь", "https://d.example:8443/a*b_c~d",
    "https://e.example/%D1%8F?x=%20", "https://f.example/a'b", "https://g.example/?lt=1&lt;=2", "https://h.example/🦊",
    "https://i.example/a|b^c", "HTTPS://J.EXAMPLE/UPPER", "https://user@k.example/", "https://l.example?x[]=1",
    "https://m.example/((a)(b))", "http://8.8.8.8/x",
]  # fmt: skip
CODE = [
    "x = 1", "  indented", "a  b", "def f():\n    return 1", "\tтаб", "<b>&amp;</b>", "*a* _b_",
    "if x:\n\n\n        y", "a\n  b\n    c", "`", "``", "\\n", "   three", "🦊  =  «x»", "# no heading",
    "> no quote", "- a\n    - b",
]  # fmt: skip
LANGUAGES = ["", "", "python", "c++", "sh"]
TAGS = {
    "bold": ["b", "strong", "B"],
    "italic": ["i", "em"],
    "underline": ["u", "ins"],
    "strikethrough": ["s", "del", "strike"],
    "spoiler": ["tg-spoiler"],
    "highlight": ["mark"],
}
MARKS = {
    "bold": ["**", "__"],
    "italic": ["*", "_"],
    "underline": ["++"],
    "strikethrough": ["~~"],
    "spoiler": ["||"],
    "highlight": ["^^"],
}
LOOKS = {
    "telegram": ["bold", "italic", "underline", "strikethrough", "spoiler"],
    "max": ["bold", "italic", "underline", "strikethrough", "highlight"],
}


@dataclass(frozen=True)
class Post:
    mode: str | None
    source: str
    meant: Read
    reveals: bool = False
    """A spoiler over code, which no platform can hide: it must be refused."""


def post(platform: str, mode: str | None, seed: int) -> Post:
    author = AUTHORS[mode](random.Random(f"{platform} {mode} {seed}"), platform)
    author.blocks()
    meant = author.meant
    return Post(mode, "".join(author.source), shown(meant.text, meant.entities), reveals(meant.entities))


def reveals(entities: Sequence[Entity]) -> bool:
    code = [one for one in entities if one.kind in ("code", "pre")]
    spoilers = [one for one in entities if one.kind == "spoiler"]
    return any(one.start < hidden.end and hidden.start < one.end for one in code for hidden in spoilers)


def long_post(platform: str, mode: str | None, seed: int) -> Post:
    """Several posts one below the other, twice as long as a message may be."""
    posts: list[Post] = []
    text, entities = "", list[Entity]()
    for number in count(seed * 1_000):
        one = post(platform, mode, number)
        if one.reveals:
            continue
        posts.append(one)
        start = len(text)
        entities += [replace(each, start=each.start + start, end=each.end + start) for each in one.meant.entities]
        text += one.meant.text + "\n\n"
        if len(text) > 8_000:
            break
    return Post(mode, "\n\n".join(one.source for one in posts), Read(text.strip("\n"), tuple(entities)))


class Author:
    """Writes source; what it means is what it says, unless an author says more."""

    vocabulary = tuple(WORDS)

    def __init__(self, luck: random.Random, platform: str) -> None:
        self.luck = luck
        self.looks = LOOKS[platform]
        self.platform = platform
        self.source: list[str] = []

    @property
    def meant(self) -> Read:
        return Read("".join(self.source))

    def blocks(self) -> None:
        gaps = [""]
        for _ in range(self.luck.randint(1, 4)):
            self.write(self.luck.choice(gaps))
            gaps = self.block() or ["\n", "\n\n"]

    def block(self) -> list[str] | None:
        """What may follow, if not any line."""
        self.lines(2)
        return None

    def lines(self, depth: int) -> None:
        for number in range(self.luck.choice([1, 1, 2, 3])):
            if number:
                self.write("\n")
            self.line(depth)

    def line(self, depth: int) -> None:
        self.words()

    def words(self) -> None:
        """Never blank; a run of spaces between words means one space."""
        words = self.luck.choices(self.vocabulary, k=self.luck.randint(1, 4))
        self.say("w" if words[0].isspace() else words[0])
        for word in words[1:]:
            self.gap()
            self.say(word)

    def gap(self) -> None:
        self.write(" ")

    def say(self, text: str) -> None:
        """Text that means itself."""
        self.source.append(text)

    def write(self, space: str) -> None:
        self.source.append(space)


class HtmlAuthor(Author):
    def __init__(self, luck: random.Random, platform: str) -> None:
        super().__init__(luck, platform)
        self.text: list[str] = []
        self.entities: list[Entity] = []

    @property
    def meant(self) -> Read:
        return Read("".join(self.text), tuple(self.entities))

    def say(self, text: str) -> None:
        self.text += text
        self.source.append(html.escape(text, quote=self.luck.random() < 0.5).replace("&#x27;", "&#39;"))

    def write(self, space: str) -> None:
        self.text += space
        self.source.append(space)

    def gap(self) -> None:
        self.text += " "
        self.source.append(self.luck.choice([" ", " ", " ", "  ", " \t "]))

    def inside(self, kind: str, tag: str, fill: Callable[[], None], attributes: str = "", value: str = "") -> None:
        start = len(self.text)
        self.source.append(f"<{tag}{attributes}>")
        fill()
        self.source.append(f"</{tag}>")
        self.entities.append(Entity(kind, start, len(self.text), value))

    def block(self) -> list[str] | None:
        choice = self.luck.random()
        if choice < 0.12:
            self.quote()
        elif choice < 0.28:
            self.pre()
        elif choice < 0.36:
            self.inside("bold", self.luck.choice(["h1", "h2", "h6"]), self.words)
        else:
            self.lines(3)
        return None

    def quote(self) -> None:
        expandable = self.platform == "telegram" and self.luck.random() < 0.3
        kind = "expandable_blockquote" if expandable else "blockquote"
        self.inside(kind, "blockquote", lambda: self.lines(2), " expandable" if expandable else "")

    def pre(self) -> None:
        code = self.luck.choice(CODE)
        language = self.luck.choice(LANGUAGES) if self.platform == "telegram" else ""
        if not language:
            self.inside("pre", "pre", lambda: self.say(code))
            return
        start = len(self.text)
        self.source.append(f'<pre><code class="language-{language}">')
        self.say(code)
        self.source.append("</code></pre>")
        self.entities.append(Entity("pre", start, len(self.text), language))

    def line(self, depth: int) -> None:
        self.inlines(depth, frozenset())

    def inlines(self, depth: int, around: frozenset[str]) -> None:
        for number in range(self.luck.choice([1, 2, 3])):
            if number and self.luck.random() < 0.7:
                self.write(" ")
            self.inline(depth, around)

    def inline(self, depth: int, around: frozenset[str]) -> None:
        choice = self.luck.random()
        if depth == 0 or choice < 0.35:
            self.words()
        elif choice < 0.45 and "spoiler" not in around and "text_link" not in around:
            self.inside("code", "code", lambda: self.say(self.luck.choice(CODE)))
        elif choice < 0.6 and "text_link" not in around:
            address = self.luck.choice(ADDRESSES)
            quote = self.luck.choice("\"'")
            written = html.escape(address, quote=True)
            inner = around | {"text_link"}
            self.inside(
                "text_link", "a", lambda: self.inlines(depth - 1, inner), f" href={quote}{written}{quote}", address
            )
        elif choice < 0.64 and self.platform == "telegram" and "text_link" not in around:
            self.inside(
                "custom_emoji",
                "tg-emoji",
                lambda: self.say("👍"),
                ' emoji-id="5368324170671202286"',
                "5368324170671202286",
            )
        else:
            look = self.luck.choice(self.looks)
            self.inside(look, self.luck.choice(TAGS[look]), lambda: self.inlines(depth - 1, around | {look}))


class MarkdownAuthor(Author):
    r"""Words may be marks, and of the careless some marks are left open: markdown-it-py says what they mean.

    It trims no-break spaces, and what ``\`\`\`x\`\`\``` inside a line means is a matter of taste: neither is written.
    """

    vocabulary = tuple(word for word in WORDS if not word.isspace())

    def __init__(self, luck: random.Random, platform: str) -> None:
        super().__init__(luck, platform)
        self.careless = luck.random() < 0.3

    @property
    def meant(self) -> Read:
        return markdown.read("".join(self.source))

    def block(self) -> list[str] | None:
        choice = self.luck.random()
        if choice < 0.12:
            self.quote()
            return ["\n\n"]
        if choice < 0.24:
            self.fence()
        elif choice < 0.32:
            self.say("#" * self.luck.randint(1, 6) + " ")
            self.words()
        elif choice < 0.4:
            self.say("- item\n  - nested\n    1. deeper\n- last")
        else:
            self.lines(3)
        return None

    def quote(self) -> None:
        for number in range(self.luck.randint(1, 3)):
            self.write("\n> " if number else "> ")
            self.line(2)

    def fence(self) -> None:
        code = self.luck.choice(CODE)
        mark = self.luck.choice(["```", "```", "````", "~~~"])
        language = self.luck.choice(LANGUAGES)
        self.say(f"{mark}{language}\n{code}\n{mark}")

    def line(self, depth: int) -> None:
        self.inlines(depth, frozenset())

    def inlines(self, depth: int, around: frozenset[str]) -> None:
        for number in range(self.luck.choice([1, 2, 3])):
            if number and self.luck.random() < 0.9:
                self.write(" ")
            self.inline(depth, around)

    def inline(self, depth: int, around: frozenset[str]) -> None:
        choice = self.luck.random()
        if depth == 0 or choice < 0.35:
            self.words()
        elif choice < 0.45 and not around & {"spoiler", "text_link"}:
            self.code()
        elif choice < 0.6 and "text_link" not in around:
            self.link(depth, around | {"text_link"})
        else:
            look = self.luck.choice([one for one in self.looks if one not in around])
            mark = self.luck.choice(MARKS[look])
            self.say(mark)
            self.inlines(depth - 1, around | {look})
            forgotten = self.careless and look != "spoiler" and self.luck.random() < 0.2
            self.say("" if forgotten else mark)

    def code(self) -> None:
        code = self.luck.choice([one for one in CODE if "\n" not in one and "``" not in one])
        self.say(f"`{code}`" if "`" not in code else f"`` {code} ``")

    def link(self, depth: int, around: frozenset[str]) -> None:
        address = self.luck.choice(ADDRESSES)
        choice = self.luck.random()
        if choice < 0.15:
            self.say(f"<{address}>")
            return
        self.say("[")
        self.inlines(depth - 1, around)
        self.say(f"](<{address}>)" if choice < 0.3 else f']({address} "title")' if choice < 0.4 else f"]({address})")

    def say(self, text: str) -> None:
        """A lone backtick, bracket or tilde changes the meaning of much that follows, so these are escaped."""
        self.source.append({"`": "\\`", "~": "\\~", "[x]": "\\[x\\]"}.get(text, text))


class PlainAuthor(Author):
    pass


AUTHORS: dict[str | None, type[Author]] = {"HTML": HtmlAuthor, "Markdown": MarkdownAuthor, None: PlainAuthor}


def without_languages(read: Read) -> Read:
    """MAX shows code without its language."""
    kept = (replace(one, value="") if one.kind == "pre" else one for one in read.entities)
    return Read(read.text, tuple(kept))
