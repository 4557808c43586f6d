"""Markdown as its senders mean it and as MAX documents it, read by markdown-it-py.

Blocks are only fences, quotes and headings: a list is text, and every line keeps its end and its indentation.
Inside them CommonMark decides, with ``~~``, ``++``, ``^^`` and ``||`` as further marks.
"""

from collections.abc import Callable, Sequence
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.parser_inline import ParserInline
from markdown_it.rules_inline.state_inline import Delimiter, Scanned, StateInline
from markdown_it.token import Token

from adapters.readers.entities import Entity, Read

KINDS = {"strong": "bold", "em": "italic", "s": "strikethrough", "link": "text_link"}
BLOCK_KINDS = {"fence": "pre", "blockquote_open": "blockquote", "heading_open": "bold"}
FURTHER = {"+": "underline", "^": "highlight", "|": "spoiler"}
BLOCKS = ["fence", "blockquote", "heading"]
INLINES = [
    "escape",
    "entity",
    "backticks",
    "strikethrough",
    "emphasis",
    "link",
    "autolink",
    "balance_pairs",
    "fragments_join",
]


def read(source: str) -> Read:
    """The text with its entities as they stand in it: nothing is trimmed or resolved."""
    found = Found()
    found.blocks(PARSER.parse(source))
    return Read("".join(found.text), tuple(found.entities))


class Found:
    def __init__(self) -> None:
        self.text: list[str] = []
        """One code point each."""
        self.entities: list[Entity] = []
        self._line: int | None = None
        """Of the source: the last that was read."""
        self._open: list[tuple[int, Token]] = []

    def blocks(self, tokens: Sequence[Token]) -> None:
        for token in tokens:
            if token.type == "inline":
                self.inline(token.children or [])
            elif token.nesting < 0:
                self.end_block()
            else:
                self.break_lines(token)
                self._open.append((len(self.text), token))
                if token.type == "fence":
                    self.text += token.content.removesuffix("\n")
                    self.end_block()

    def break_lines(self, token: Token) -> None:
        first, _ = lines(token)
        if self._line is not None:
            self.text += "\n" * (first - self._line)
        self._line = first

    def end_block(self) -> None:
        start, token = self._open.pop()
        if token.type in BLOCK_KINDS:
            language = token.info.strip().split(" ")[0] if token.type == "fence" else ""
            self.cover(BLOCK_KINDS[token.type], start, language)
        if token.type != "blockquote_open":
            self._line = lines(token)[1]

    def inline(self, tokens: Sequence[Token]) -> None:
        opened: list[tuple[int, Token]] = []
        for token in tokens:
            if token.nesting > 0:
                opened.append((len(self.text), token))
            elif token.nesting < 0:
                start, began = opened.pop()
                kind = began.type.removesuffix("_open")
                self.cover(KINDS.get(kind, kind), start, str(began.attrs.get("href", "")))
            else:
                start = len(self.text)
                self.text += "\n" if token.type == "hardbreak" else token.content
                if token.type == "code_inline":
                    self.cover("code", start)

    def cover(self, kind: str, start: int, value: str = "") -> None:
        if len(self.text) > start:
            self.entities.append(Entity(kind, start, len(self.text), value))


def lines(token: Token) -> tuple[int, int]:
    """Its first and last line in the source."""
    first, end = token.map or (0, 1)
    return first, end - 1


def mark_rule(character: str) -> Callable[[StateInline, bool], bool]:
    """Two of a character open and close a mark, as ``~~`` does."""

    def rule(state: StateInline, silent: bool) -> bool:
        if silent or state.src[state.pos] != character:
            return False
        run = state.scanDelims(state.pos, True)
        if run.length < 2:
            return False
        for size in ([1] if run.length % 2 else []) + [2] * (run.length // 2):
            token = state.push("text", "", 0)
            token.content = character * size
            if size == 2:
                here = len(state.tokens) - 1
                state.delimiters.append(Delimiter(ord(character), 0, here, -1, run.can_open, run.can_close))
        state.pos += run.length
        return True

    return rule


def pair_rule(character: str, kind: str) -> Callable[[StateInline], None]:
    def pair(state: StateInline) -> None:
        for delimiters in [state.delimiters, *(meta["delimiters"] for meta in state.tokens_meta if meta)]:
            for one in delimiters:
                if one.marker == ord(character) and one.end >= 0:
                    turn(state.tokens[one.token], f"{kind}_open", 1)
                    turn(state.tokens[delimiters[one.end].token], f"{kind}_close", -1)
        move_behind_ends(state.tokens, character, f"{kind}_close")

    return pair


def move_behind_ends(tokens: list[Token], odd: str, end: str) -> None:
    """The odd one of three stands outside of what the two others close."""
    for here in range(len(tokens) - 1, -1, -1):
        if tokens[here].type == "text" and tokens[here].content == odd:
            behind = here
            while behind + 1 < len(tokens) and tokens[behind + 1].type == end:
                behind += 1
            tokens.insert(behind, tokens.pop(here))


def turn(token: Token, type_: str, nesting: int) -> None:
    token.type, token.nesting, token.content = type_, nesting, ""  # type: ignore[assignment]


class WholeState(StateInline):
    """CommonMark looks at the character behind a mark; markdown-it takes the end of a link's text for a space."""

    def scanDelims(self, start: int, canSplitWord: bool) -> Scanned:  # noqa: N802, N803  markdown-it's names
        end, self.posMax = self.posMax, len(self.src)
        try:
            return super().scanDelims(start, canSplitWord)
        finally:
            self.posMax = end


class WholeInline(ParserInline):
    def parse(self, src: str, md: MarkdownIt, env: Any, tokens: list[Token]) -> list[Token]:
        state = WholeState(src, md, env, tokens)
        self.tokenize(state)
        for rule in self.ruler2.getRules(""):
            rule(state)
        return state.tokens


def made() -> MarkdownIt:
    parser = MarkdownIt()
    parser.inline = WholeInline()
    parser.configure("zero").enable([*BLOCKS, *INLINES])
    parser.normalizeLink = lambda url: url  # type: ignore[method-assign]
    parser.normalizeLinkText = lambda url: url  # type: ignore[method-assign]
    parser.validateLink = lambda url: True  # type: ignore[method-assign]
    for character, kind in FURTHER.items():
        parser.inline.add_terminator_char(character)
        parser.inline.ruler.before("emphasis", kind, mark_rule(character))
        parser.inline.ruler2.after("balance_pairs", kind, pair_rule(character, kind))
    return parser


PARSER = made()
