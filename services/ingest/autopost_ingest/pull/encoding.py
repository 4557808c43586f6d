"""Which characters the bytes of a feed are. What it declares of itself is often wrong, so the bytes are asked first."""

import codecs
import re
from itertools import pairwise

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_WITHOUT_BOM = ((b"<\x00", "utf-16-le"), (b"\x00<", "utf-16-be"))
_CHARSET = re.compile(r"charset\s*=\s*[\"']?([\w.:-]+)", re.IGNORECASE)
_DECLARED = re.compile(rb"^[^>]{0,200}?encoding\s*=\s*[\"']([\w.:-]+)[\"']", re.IGNORECASE)
_NOT_FOR_TEXT = frozenset(
    {"utf-7", "punycode", "idna", "unicode_escape", "raw_unicode_escape", "undefined", "mbcs", "oem"}
)
_SEVEN_BIT = ("iso2022", "hz")  # looks like ASCII and is not
_CONTROLS = {
    code: None for code in (*range(0x20), 0x7F, 0xFFFE, 0xFFFF, *range(0xD800, 0xE000)) if code not in (9, 10, 13)
}


def decode(body: bytes, content_type: str) -> str:
    """Never fails: at worst some characters are wrong. Characters that no document may have are left out."""
    return _text(body, content_type).translate(_CONTROLS)


def _text(body: bytes, content_type: str) -> str:
    for mark, name in _BOMS:
        if body.startswith(mark):
            return body[len(mark) :].decode(name, "replace")
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
    said = _CHARSET.search(content_type)
    inside = _DECLARED.match(body.lstrip())
    named = [said[1] if said else "", inside[1].decode() if inside else ""]
    return [known for name in named if name and (known := _known(name))]


def _known(name: str) -> str | None:
    try:
        found = codecs.lookup(name)
    except LookupError:
        return None
    is_text = getattr(found, "_is_text_encoding", True)
    return found.name if is_text and found.name not in _NOT_FOR_TEXT and found.name != "utf-8" else None


def _guessed(body: bytes) -> str:
    """Nearly UTF-8 is UTF-8 with a slip; else it is Cyrillic when most of it would be lower-case Russian letters."""
    text = body.decode("utf-8", "replace")
    high = [byte for byte in body if byte >= 0x80]
    if text.count("\ufffd") * 10 <= len(high):
        return text
    russian = sum(byte >= 0xC0 for byte in high)
    small = sum(byte >= 0xE0 for byte in high)
    is_cyrillic = russian >= len(high) * 0.8 and small >= len(high) * 0.5 and _in_runs(body)
    return body.decode("cp1251" if is_cyrillic else "cp1252", "replace")


def _in_runs(body: bytes) -> bool:
    """Words of another alphabet are high bytes side by side; an accent stands alone."""
    pairs = sum(one >= 0xC0 and other >= 0xC0 for one, other in pairwise(body))
    return pairs * 2 >= sum(byte >= 0xC0 for byte in body)
