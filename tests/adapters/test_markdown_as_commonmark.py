"""Markdown is CommonMark's inline part with strikethrough: markdown-it-py reads the same texts, and sees the same."""

import random
import re
from collections.abc import Iterator, Sequence

import pytest
from autopost_adapters.compilers import compile_content
from autopost_adapters.markup.markdown import read_markdown
from autopost_adapters.markup.marked import Marked
from autopost_contracts.payload import Flags, PostRequest
from autopost_contracts.plan import Profile, TextPart
from autopost_ingest.posts.normalize import normalize
from markdown_it import MarkdownIt
from markdown_it.token import Token

KINDS = {"em": "italic", "strong": "bold", "s": "strike", "link": "link", "heading": "bold", "blockquote": "quote"}
BLOCKS_IN_CHATS = ["list", "hr", "lheading", "html_inline", "html_block", "image", "code", "reference", "table"]
"""Switched off: in a chat they are text."""

Span = tuple[str, int, int]
Seen = list[tuple[str, frozenset[str]]]
"""The visible characters, each with its markup."""


class Reference:
    """The text and the marks that markdown-it-py finds."""

    def __init__(self, source: str) -> None:
        self.text = ""
        self.spans: list[Span] = []
        self._open: list[tuple[str, int]] = []
        reader = MarkdownIt("commonmark").enable("strikethrough").disable(BLOCKS_IN_CHATS)
        self._read(reader.parse(source))

    def _read(self, tokens: Sequence[Token]) -> None:
        for token in tokens:
            name, _, edge = token.type.rpartition("_")
            if token.type == "inline":
                self._read(token.children or ())
            elif token.type in ("text", "text_special"):
                self.text += token.content
            elif token.type in ("softbreak", "hardbreak"):
                self.text += "\n"
            elif token.type in ("code_inline", "fence"):
                self._code("pre" if token.type == "fence" else "code", token.content.removesuffix("\n"))
            elif edge == "open":
                self._open.append((name, len(self.text)))
            elif edge == "close":
                self._close(*self._open.pop())

    def _code(self, kind: str, text: str) -> None:
        self.spans.append((kind, len(self.text), len(self.text) + len(text)))
        self.text += text + ("\n" if kind == "pre" else "")

    def _close(self, name: str, start: int) -> None:
        if name in KINDS:
            self.spans.append((KINDS[name], start, len(self.text)))
        if name in ("heading", "paragraph"):
            self.text += "\n"


def seen(text: str, spans: Sequence[Span]) -> Seen:
    return [
        (character, frozenset(kind for kind, start, end in spans if start <= at < end))
        for at, character in enumerate(text)
        if not character.isspace()
    ]


def seen_by_us(text: str) -> Seen:
    marked, wrong = read_markdown(text)
    assert wrong is None
    return seen(marked.text, [(one.kind, one.start, one.end) for one in marked.entities])


def seen_by_reference(text: str) -> Seen:
    read = Reference(text)
    return seen(read.text, read.spans)


EMPHASIS = ("*", "*", "**", "***", "_", "__", "~~", "a", "b", " ", "«", "»", ".", "−50%")
INLINE = (
    *("*", "**", "_", "~~", "`", "``", "a", "b", " ", "\\", "\\*", "\\\n", "\n", "[", "]", "&amp;", "&lt", "&nosuch;"),
    *("[c](http://e.com)", "](http://e.com)", "](<http://e.com/a b>)", '](http://e.com "t")', "](http://e.com 't')"),
    *("](http://e.com/(a)(b))", "](http://e.com/(a(b)))", "<https://e.com/a>", "<", "](\nhttp://e.com)"),
)
NOT_ALIKE = re.compile(r"~~~|```|`[ \n]*`|\\\s*$")
"""What is never closed is text with us; code of spaces only is none; a backslash at the end is trimmed otherwise."""


def random_texts(alphabet: Sequence[str], count: int, length: int) -> Iterator[str]:
    chance = random.Random(19)
    for _ in range(count):
        text = "".join(chance.choice(alphabet) for _ in range(chance.randint(1, length))).strip()
        if not NOT_ALIKE.search(text):
            yield text


@pytest.mark.parametrize(("alphabet", "length"), [(EMPHASIS, 12), (INLINE, 10)], ids=["emphasis", "inline"])
def test_random_inline_markdown_is_read_as_commonmark_reads_it(alphabet: Sequence[str], length: int) -> None:
    texts = list(random_texts(alphabet, 4000, length))

    assert [text for text in texts if seen_by_us(text) != seen_by_reference(text)] == []
    assert len(texts) > 2000


def random_documents(count: int) -> Iterator[str]:
    chance = random.Random(19)
    lines = ("x = 1", "*a*", "`k`", "", "> q", "# h", "a  b", "````" * 4, "a ``` b", "a ~~~ b")
    prose = (
        "para *x*",
        "a `b` c",
        "two\nlines",
        "[a](http://e.com)",
        "# h",
        "## *h* x ##",
        "> a *b*\n> c\n",
        "> `c`\n",
    )
    for _ in range(count):
        blocks = []
        for _ in range(chance.randint(1, 4)):
            if chance.random() < 0.5:
                mark = chance.choice("`~") * chance.randint(3, 5)
                shorter = mark[:-1] if len(mark) > 3 else "y"
                inner = [
                    " " * chance.choice((0, 2, 4, 8)) + chance.choice((*lines[:7], *lines[8:], shorter)) for _ in "ab"
                ]
                blocks.append("\n".join((mark + chance.choice(("", "py", " py")), *inner, "end", mark)))
            else:
                blocks.append(chance.choice(prose))
        yield "\n".join(blocks)


def test_random_blocks_are_read_as_commonmark_reads_them_and_code_keeps_its_spaces() -> None:
    """After normalisation, which must have found the same code."""
    for source in random_documents(1500):
        text = normalize(PostRequest(text=source, parse_mode="Markdown")).content.text
        marked, _ = read_markdown(text)
        read = Reference(source)
        code = [read.text[start:end].rstrip() for kind, start, end in read.spans if kind == "pre"]

        assert seen_by_us(text) == seen(read.text, read.spans), source
        assert [marked.text[one.start : one.end] for one in marked.entities if one.kind == "pre"] == [
            re.sub(r"^(\s*\n)+", "", one) for one in code
        ], source


@pytest.mark.parametrize(
    ("source", "html"),
    [
        ("*Акция «**−50%**» до пятницы*", "<i>Акция «<b>−50%</b>» до пятницы</i>"),
        ("***Важно:** до пятницы*", "<i><b>Важно:</b> до пятницы</i>"),
        ("*a**b***", "<i>a<b>b</b></i>"),
        ("****b****", "<b>b</b>"),
    ],
)
def test_the_rule_of_three_pairs_the_marks(source: str, html: str) -> None:
    assert on_platform("telegram", source) == (html, "html")


def on_platform(platform: str, text: str) -> tuple[str, str]:
    content = normalize(PostRequest(text=text, parse_mode="Markdown")).content
    plan = compile_content(content, Flags(), Profile(profile_hash="p", platform=platform)).plan
    assert plan is not None
    [part] = plan.parts
    assert isinstance(part, TextPart)
    return part.text, part.markup


@pytest.mark.parametrize(
    ("source", "seen_text", "url"),
    [
        ('[a](https://e.example "Title")', "a", "https://e.example"),
        ("[a](https://e.example 'Title')", "a", "https://e.example"),
        ("[a](https://e.example (Title))", "a", "https://e.example"),
        (r'[a](https://e.example "a \"b\"")', "a", "https://e.example"),
        ("[a](<https://e.example/b c>)", "a", "https://e.example/b%20c"),
        ("[a](<https://e.example/b(c>)", "a", "https://e.example/b(c"),
        ("[a]( https://e.example\n)", "a", "https://e.example"),
        ("[a](https://e.example/(b)_(c))", "a", "https://e.example/(b)_(c)"),
        ("[a](https://e.example/(b(c)))", "a", "https://e.example/(b(c))"),
        (r"[a](https://e.example/\(b)", "a", "https://e.example/(b"),
        ("[a](https://e.example/?b=1&amp;c=2&copy=3)", "a", "https://e.example/?b=1&c=2&copy=3"),
        ("[a `]` b](https://e.example)", "a ] b", "https://e.example"),
        ("<https://e.example/b_c*d*>", "https://e.example/b_c*d*", "https://e.example/b_c*d*"),
        ("<tg://resolve?domain=a>", "tg://resolve?domain=a", "tg://resolve?domain=a"),
    ],
)
def test_a_link_may_have_a_title_brackets_and_angle_brackets(source: str, seen_text: str, url: str) -> None:
    marked, wrong = read_markdown(source)

    assert wrong is None
    assert marked.text == seen_text
    assert [one.value for one in marked.entities if one.kind == "link"] == [url]


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("a\\\nb", "a\nb"),
        ("a\\", "a\\"),
        ("write to <me@e.example>", "write to me@e.example"),
        ("a < b <c> <b>d</b>", "a < b <c> <b>d</b>"),
        ("R&amp;D &lt;b&gt; &#8212; Q&A &nosuch;", "R&D <b> — Q&A &nosuch;"),
        ("[a](https://e.example(b)", "[a](https://e.example(b)"),
        ('[a](https://e.example "open)', '[a](https://e.example "open)'),
    ],
)
def test_line_breaks_references_and_loose_brackets_are_text(source: str, text: str) -> None:
    assert read_markdown(source) == (Marked(text), None)


@pytest.mark.parametrize("mark", ["#", "###", "######"])
def test_a_heading_is_a_line_in_bold_without_its_marks(mark: str) -> None:
    assert on_platform("telegram", f"a\n{mark} *Head* line {mark}\nb") == ("a\n<b><i>Head</i> line</b>\nb", "html")


@pytest.mark.parametrize(
    "source",
    [
        "````\n```\na  b\n```\n````",
        "~~~\n```\na  b\n```\n~~~",
        "~~~~\n```\na  b\n```\n~~~~~",
        "> ~~~\n> ```\n> a  b\n> ```\n> ~~~",
    ],
)
def test_a_longer_fence_or_one_of_tildes_may_contain_a_fence(source: str) -> None:
    content = normalize(PostRequest(text=source, parse_mode="Markdown")).content
    marked, _ = read_markdown(content.text)

    assert [marked.text[one.start : one.end] for one in marked.entities if one.kind == "pre"] == ["```\na  b\n```"]


TO_MAX: list[tuple[str, str, str]] = [
    ("**a** *b* ~~c~~", "**a** _b_ ~~c~~", "markdown"),
    ("a", "a", "markdown"),
    ("```\na\n```", "<pre>a</pre>", "html"),
    ("> a\nb", "<blockquote>a</blockquote>\nb", "html"),
    ("![a](https://e.example)", '!<a href="https://e.example">a</a>', "html"),
    (r"a\b", r"a\b", "html"),
    (r"2 \* 2", "2 * 2", "html"),
    ("- a\n  - b", "- a\n  - b", "html"),
    ("&amp;lt; \\<b>", "&amp;lt; &lt;b&gt;", "html"),
    ("«**a**» (*b*)", "«**a**» (_b_)", "markdown"),
    ("a**b**c", "a<b>b</b>c", "html"),
    ("**a**b", "<b>a</b>b", "html"),
    ("[a](https://e.example)b", "[a](https://e.example)b", "markdown"),
    ("~~~a~~~", "~<s>a</s>~", "html"),
    ("Title\n===\na", "Title\n===\na", "html"),
    ("a\n---\nb", "a\n---\nb", "html"),
    ("* * *", "* * *", "html"),
    ("a == b\n- c", "a == b\n- c", "markdown"),
]


@pytest.mark.parametrize(("source", "text", "markup"), TO_MAX)
def test_max_gets_markdown_only_where_it_is_certain_and_always_a_format(source: str, text: str, markup: str) -> None:
    assert on_platform("max", source) == (text, markup)


@pytest.mark.parametrize("source", ["<b>{}</b>", "**{}**"])
def test_a_bold_post_of_3990_letters_passes_on_max(source: str) -> None:
    mode = "HTML" if source.startswith("<") else "Markdown"
    content = normalize(PostRequest(text=source.format("я" * 3990), parse_mode=mode)).content

    assert compile_content(content, Flags(), Profile(profile_hash="p", platform="max")).problems == ()
