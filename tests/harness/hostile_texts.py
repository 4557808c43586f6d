"""Texts that make a naive parser slow, of any requested length.

A new pattern goes into one of the four tables; every test of complexity and the budget of ingest's loop then know it.
"""

from collections.abc import Callable
from itertools import count

Text = Callable[[int], str]


def _repeated(unit: str, before: str = "", after: str = "") -> Text:
    return lambda size: before + unit * ((size - len(before) - len(after)) // len(unit)) + after


def _nested(opening: str, closing: str, inner: str = "x", before: str = "", after: str = "") -> Text:
    def text(size: int) -> str:
        depth = (size - len(before + inner + after)) // len(opening + closing)
        return before + opening * depth + inner + closing * depth + after

    return text


def _backtick_runs(size: int) -> str:
    """Runs of one, two, three … backticks: each looks for its like."""
    runs, length = [], 0
    for ticks in count(1):
        length += ticks + 2
        if length > size:
            return "".join(runs)
        runs.append("`" * ticks + "a ")
    raise AssertionError


def _looks_around_code(size: int) -> str:
    """Looks, one in the other, around quotes that each have code inside."""
    looks, unit = "<b><i><u><s>", "<blockquote>a<code>x</code></blockquote>"
    closing = "</s></u></i></b>"
    return looks + unit * ((size - len(looks + closing)) // len(unit)) + closing


def _many_looks_around_code(size: int) -> str:
    unit = "<b>a<code>x</code><i>b</i></b><blockquote>c<code>y</code></blockquote>"
    return unit * (size // len(unit))


def _alternating_lengths(size: int) -> str:
    """Markdown that is shorter as HTML: what fits is not known from what is shorter."""
    return (r"\*" * 40 + r" **a\*b** ") * (size // 90)


PLAIN: dict[str, Text] = {
    "letters": _repeated("x"),
    "words": _repeated("word "),
    "sentences": _repeated("A sentence. Another one!\n\n"),
    "emoji": _repeated("🦊"),
    "regional indicators": _repeated("\U0001f1e9"),
    "flags and letters": _repeated("\U0001f1e9\U0001f1eax"),
    "combining marks": _repeated("a" + "\u0301\u0323" * 15),
    "joiners": _repeated("\u200d"),
    "prepending marks": _repeated("\u0600"),
    "viramas": _repeated("क्"),
    "hangul vowels": _repeated("\u1161"),
    "hangul leading": _repeated("\u1100"),
    "family emoji": _repeated("👩\u200d"),
    "spaces": _repeated(" ", "a", "b"),
    "line breaks": _repeated("\n", "a", "b"),
    "spaced lines": _repeated(" \n", "a", "b"),
    "wide spaces": _repeated("\u2003", "a", "b"),
    "gaps between letters": _repeated("a" + " " * 4000),
    "sentence ends": _repeated('."'),
    "carriage returns": _repeated("\r"),
}

MARKDOWN: dict[str, Text] = {
    "stars and a letter": _repeated("***a"),
    "star and underscore": _repeated("*_"),
    "star, letter, underscore": _repeated("*a_"),
    "stars": _repeated("*", after="a"),
    "underscores and letters": _repeated("_a "),
    "double marks": _repeated("**a __b ~~c ++d ^^e ||f "),
    "bold words": _repeated("**a** "),
    "bold letters": _repeated("**a**b"),
    "nested marks": _nested("**a *b ", "*c**d"),
    "backtick runs": _backtick_runs,
    "backticks and letters": _repeated("`a"),
    "double backticks": _repeated("``a`"),
    "open fences": _repeated("```\n"),
    "fences with growing ticks": lambda size: "".join("`" * (3 + i % 300) + "\n" for i in range(size // 150)),
    "fences": _repeated("```\na\n```\n"),
    "open brackets": _repeated("["),
    "brackets": _nested("[", "]"),
    "brackets with addresses": _nested("[", "](http://a.b)"),
    "open addresses": _repeated("[a](", after=")"),
    "addresses in brackets": _repeated("[a](x(y"),
    "address brackets": _repeated("[a](http://a.b/(c)"),
    "address spaces": _repeated(" ", "[a](", "x"),
    "links": _repeated("[a](http://a.b) "),
    "bare addresses": _repeated("https://"),
    "bare address of dots": _repeated(".", "https://a"),
    "bare addresses of dots": _repeated("https://a" + "." * 500),
    "backslashes": _repeated("\\"),
    "escaped stars": _repeated(r"\*"),
    "lengths that alternate": _alternating_lengths,
    "quotes": _repeated("> a\n"),
    "nested quotes": _repeated("> > > > a\n"),
    "quote marks": _repeated(">"),
    "quote marks and spaces": _repeated("> "),
    "headings": _repeated("# a\n"),
    "open tilde fences": _repeated("~~~\n"),
    "tilde fences": _repeated("~~~\na\n~~~\n"),
    "shrinking fences": lambda size: "\n".join("`" * ticks for ticks in range(int((2 * size) ** 0.5), 2, -1)),
    "fences in a quote": _repeated("> ~~~\n> a\n"),
    "open titles": _repeated('[a](b "'),
    "titles": _repeated('[a](b "c") '),
    "angle brackets in addresses": _repeated("[a](<b"),
    "nested address brackets": _repeated("[a](((b"),
    "address brackets in a row": _repeated("(a)", "[a](", "x"),
    "open angle brackets": _repeated("<https:"),
    "autolinks": _repeated("<https://a.b> "),
    "open mail addresses": _repeated("<a.a@a."),
    "references in Markdown": _repeated("&amp;"),
    "open references in Markdown": _repeated("&amp"),
    "heading ends": _repeated(" #", "# a"),
    "list items": _repeated("\n    - a"),
    "indented lines": _repeated("\n" + " " * 500),
    "fences and spaces": _repeated("```  a``` "),
    "heading spaces": _repeated(" ", "#", "a"),
    "heading spaces in lines": _repeated("#" + " " * 500 + "\n"),
    "lines": _repeated("a\n"),
    "indented marks": _repeated("   \n#"),
}

HTML: dict[str, Text] = {
    "less-than signs": _repeated("<"),
    "less-than letters": _repeated("<a"),
    "open tags": _repeated("<b>"),
    "open tags of two": _repeated("<b><i>"),
    "bold tags": _repeated("<b>a</b>"),
    "bold tags and spaces": _repeated("<b>a</b> "),
    "nested tags": _nested("<b>", "</b>"),
    "nested tags of two": _nested("<b><i>", "</i></b>"),
    "nested tags with text": _nested("<b>a", "</b>"),
    "nested tags in code": _nested("<b> ", "</b>", before="<pre>", after="</pre>"),
    "nested spoilers": _nested("<tg-spoiler>a", "</tg-spoiler>"),
    "nested quote tags": _nested("<blockquote>a", "</blockquote>"),
    "nested links": _nested('<a href="http://a.b">a', "</a>"),
    "nested unknown tags": _nested("<div>", "</div>"),
    "nested unknown tags with text": _nested("<p>a", "</p>"),
    "unknown tags": _repeated("<p></p>"),
    "line break tags": _repeated("<br>"),
    "empty line tags": _repeated("<b></b><p>"),
    "looks around code": _looks_around_code,
    "looks around codes": _nested("<code>x</code>", "", "", "<b><i><u><s>", "</s></u></i></b>"),
    "many looks around code": _many_looks_around_code,
    "quotes around code": _repeated("<blockquote>a<code>x</code></blockquote>"),
    "bold around code": _repeated("<b>a<code>x</code>b</b>"),
    "attributes": _repeated(' a="b"', "<a", ">x</a>"),
    "attribute names": _repeated("a ", "<a ", ">x</a>"),
    "attribute equals": _repeated("=", "<a ", ">x</a>"),
    "attribute spaces": _repeated(" ", "<a b", ">x</a>"),
    "quotes in a tag": _repeated("'", "<a ", ">x</a>"),
    "open quotes in tags": _repeated("<a '"),
    "open comments": _repeated("<!--"),
    "comments": _repeated("<!-- a -->"),
    "dashes in a comment": _repeated("-", "<!--", ">"),
    "ampersands": _repeated("&"),
    "references": _repeated("&amp;"),
    "open references": _repeated("&" + "a" * 31),
    "numbered references": _repeated("&#33;"),
    "open numbers": _repeated("&#1"),
    "links in tags": _repeated('<a href="http://a.b">a</a> '),
    "emoji tags": _repeated('<tg-emoji emoji-id="1">a</tg-emoji>'),
    "pre tags": _repeated("<pre>a</pre>"),
    "open pre tags": _repeated("<pre>  "),
    "pre and spaces": _repeated("<pre> </pre>  "),
}

SECRETS: dict[str, Text] = {
    "at signs": _repeated("a@"),
    "encoded at signs": _repeated("%40"),
    "URL users and at signs": _repeated("a@", "https://"),
    "phone dashes": _repeated("8\u20131"),
    "mail dots": _repeated("a.", "a@"),
    "mail letters": _repeated("a", after="@"),
    "digits": _repeated("1"),
    "digits and spaces": _repeated("1 "),
    "phone plus": _repeated("+1 "),
    "phone brackets": _repeated("8 (900"),
    "colons": _repeated(":"),
    "bot tokens": _repeated("/bot"),
    "bearer": _repeated("bearer "),
    "bearer spaces": _repeated(" ", "bearer"),
    "authorization": _repeated("authorization: "),
    "authorization spaces": _repeated(" ", "authorization"),
    "secret header": _repeated("x-"),
    "secret header letters": _repeated("x-a"),
    "cookies": _repeated("cookie: "),
    "cookie spaces": _repeated(" ", "cookie"),
    "URL passwords": _repeated("://a:"),
    "URL users": _repeated("://"),
    "URL user": _repeated("a", "://"),
    "equals": _repeated("token="),
    "typed names": _repeated("token:"),
    "typed names and spaces": _repeated("token:  "),
    "typed letters": _repeated("a", "password: "),
    "typed letters again and again": _repeated("password: " + "a" * 60 + " "),
    "typed words": _repeated("password: word "),
    "typed passwords": _repeated("пароль: а1бв "),
    "typed quotes": _repeated("token='"),
    "words with dashes": _repeated("a-", after="token"),
    "quoted names": _repeated('"token":"'),
    "quoted names and backslashes": _repeated('"token":"\\'),
    "quotes and backslashes": _repeated('\\"'),
    "double quotes": _repeated('"', ":"),
    "quoted words": _repeated('"a_', ":"),
    "quoted name and spaces": _repeated(" ", '"token"'),
    "quoted names and spaces": _repeated('"token"   : '),
    "names of secrets": _repeated("token=a "),
    "names with a dash": _repeated("x-a-key:a "),
    "addresses": _repeated("a@b.cd "),
    "address beginnings": _repeated("a@b.c"),
    "phone numbers": _repeated("+79001234567 "),
    "tokens of bots": _repeated("123456:" + "a" * 30 + " "),
    "passwords": _repeated("://a:b@/"),
    "dashes after a quote": _repeated("-", '"', ":"),
}

TEXTS: dict[str, Text] = PLAIN | MARKDOWN | HTML | SECRETS
