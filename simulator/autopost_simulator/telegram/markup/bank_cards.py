"""Numbers that the server takes for bank cards: 13 to 19 digits with a correct checksum, in any common grouping."""

import re
from collections.abc import Iterator

_CANDIDATE = re.compile(r"[0-9][0-9 -]*")
_DIGIT = re.compile(r"[0-9]")
_NOT_BEFORE = re.compile(r"[^\W\d]|[.,+-]")
_NOT_AFTER = re.compile(r"[^\W\d]|-")


def find_bank_cards(text: str) -> Iterator[tuple[int, int]]:
    for run in _CANDIDATE.finditer(text):
        begin, end = run.start(), _continuous(run[0]) + run.start()
        end = begin + len(text[begin:end].rstrip(" -"))
        digits = "".join(_DIGIT.findall(text[begin:end]))
        if not 13 <= len(digits) <= 19 or end - begin > 2 * len(digits) - 1:
            continue
        is_part = (begin and _NOT_BEFORE.match(text, begin - 1)) or _NOT_AFTER.match(text, end)
        if not is_part and _is_card(digits):
            yield begin, end


def _continuous(run: str) -> int:
    """A number without gaps ends at its first space."""
    head = run.partition(" ")[0]
    return len(head) if head.isdigit() and 16 <= len(head) <= 19 else len(run)


def _is_card(digits: str) -> bool:
    doubled = (int(digit) * (1 + place % 2) for place, digit in enumerate(reversed(digits)))
    if sum(value - 9 if value > 9 else value for value in doubled) % 10:
        return False
    two, four = int(digits[:2]), int(digits[:4])
    if digits[0] == "4":
        return len(digits) in (13, 16, 18, 19)
    if 51 <= two <= 55 or 2221 <= four <= 2720 or 2200 <= four <= 2204:
        return len(digits) == 16
    if two in (34, 37):
        return len(digits) == 15
    return two not in (62, 81) or len(digits) >= 16
