"""Decode the bytes of a feed. The declared encoding is often wrong, so the bytes are checked first."""

import codecs
import re
import sys
import unicodedata
from functools import lru_cache

from w3lib.encoding import read_bom, resolve_encoding

MOST_MARKS = 30
"""Combining marks in a row, on one letter."""

_WITHOUT_BOM = ((b"<\x00", "utf-16-le"), (b"\x00<", "utf-16-be"))
_CHARSET = re.compile(r"charset\s*=\s*[\"']?([\w.:-]+)", re.IGNORECASE)
_DECLARED = re.compile(rb"^[^>]{0,200}?encoding\s*=\s*[\"']([\w.:-]+)[\"']", re.IGNORECASE)
_NOT_FOR_TEXT = frozenset(
    {"utf_7", "punycode", "idna", "unicode_escape", "raw_unicode_escape", "undefined", "mbcs", "oem"}
)
"""Normalised to underscores: which codec names have hyphens depends on the Python version."""
_SEVEN_BIT = ("iso2022", "hz")  # encodings that look like ASCII
_IS_LETTER = bytes(byte >= 0xC0 for byte in range(0x100))
_CONTROLS = {
    code: None for code in (*range(0x20), 0x7F, 0xFFFE, 0xFFFF, *range(0xD800, 0xE000)) if code not in (9, 10, 13)
}


def decode(body: bytes, content_type: str) -> str:
    """Never fails: at worst some characters are wrong. Characters that are not allowed in XML are removed."""
    return shortened(_text(body, content_type).translate(_CONTROLS))


def shortened(text: str) -> str:
    """Limit the combining marks per letter, because normalising them takes quadratic time."""
    return text if text.isascii() else _marks().sub(r"\1", text)


@lru_cache(maxsize=1)
def _marks() -> re.Pattern[str]:
    combining = "".join(map(re.escape, filter(unicodedata.combining, map(chr, range(sys.maxunicode)))))
    return re.compile(f"([{combining}]{{{MOST_MARKS}}})[{combining}]+")


def _text(body: bytes, content_type: str) -> str:
    marked, mark = read_bom(body)
    if marked and mark:
        return body[len(mark) :].decode(marked, "replace")
    for start, name in _WITHOUT_BOM:
        if body.lstrip().startswith(start):
            return body.decode(name, "replace")
    declared = _declared(body, content_type)
    if body.isascii():
        return body.decode(next((name for name in declared if name.startswith(_SEVEN_BIT)), "ascii"), "replace")
    for name in ("utf-8", *declared):
        try:
            return body.decode(name)
        except UnicodeError:
            continue
    return _guessed(body)


def _declared(body: bytes, content_type: str) -> list[str]:
    header = _CHARSET.search(content_type)
    inside = _DECLARED.match(body.lstrip())
    named = [header[1] if header else "", inside[1].decode() if inside else ""]
    return [known for name in named if name and (known := _known(name))]


def _known(name: str) -> str | None:
    """As in browsers, latin-1 means cp1252. A declared ASCII is ignored, because the bytes are not ASCII."""
    found = resolve_encoding(name)
    if found is None or found.replace("-", "_") in _NOT_FOR_TEXT or found == "utf-8" or _is_ascii(name):
        return None
    return found if getattr(codecs.lookup(found), "_is_text_encoding", True) else None


def _is_ascii(name: str) -> bool:
    try:
        return codecs.lookup(name).name == "ascii"
    except LookupError:
        return False


def _guessed(body: bytes) -> str:
    """UTF-8 if there are few errors; cp1251 if most of it would be lower-case Russian letters; else cp1252."""
    text = body.decode("utf-8", "replace")
    high = body.translate(None, bytes(range(0x80)))
    if text.count("\ufffd") * 10 <= len(high):
        return text
    russian = len(high.translate(None, bytes(range(0x80, 0xC0))))
    small = len(high.translate(None, bytes(range(0x80, 0xE0))))
    is_cyrillic = russian >= len(high) * 0.8 and small >= len(high) * 0.5 and _in_runs(body, russian)
    return body.decode("cp1251" if is_cyrillic else "cp1252", "replace")


def _in_runs(body: bytes, letters: int) -> bool:
    """Words in Cyrillic are runs of high bytes; an accented Latin letter is a single one."""
    marked = body.translate(_IS_LETTER)
    runs = marked.count(b"\0\1") + marked.startswith(b"\1")
    return (letters - runs) * 2 >= letters
