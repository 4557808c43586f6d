"""Take the value of a capture out of what the customer wrote, or refuse it.

«заказ №12345» as an order → 12345      «не помню» as an order → refused
"""

import re

from autopost_bot.engine.normal_form import normal_form
from autopost_bot.engine.rules import Accept

LONGEST_VALUE = 200
ORDER_DIGITS = (4, 12)

_DIGITS = re.compile(r"\d+")
_NUMBER = re.compile(r"-?\d{1,15}(?:[.,]\d{1,6})?")
_PHONE = re.compile(r"\+?\d(?:[ ()\-]{0,2}\d){9,14}")
_EMAIL = re.compile(r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,4}")
_SPACES = re.compile(r"\s+")
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f]")
RUSSIAN_NUMBER = 11


def read_value(accept: Accept | None, text: str, attachments: tuple[str, ...] = ()) -> str | None:
    """The accepted value, at most 200 characters; ``None`` if there is none."""
    accept = accept or Accept()
    tidy = _SPACES.sub(" ", _CONTROL.sub(" ", text)).strip()
    if not tidy:
        return attachments[0] if accept.attachments and attachments else None
    value = _READERS[accept.kind](accept, tidy)
    return None if value is None else value[:LONGEST_VALUE]


def _text(accept: Accept, text: str) -> str | None:
    return text if (accept.min or 0) <= len(text) <= (accept.max or len(text)) else None


def _order(accept: Accept, text: str) -> str | None:
    least, most = accept.digits or ORDER_DIGITS
    return next((found[0] for found in _DIGITS.finditer(text) if least <= len(found[0]) <= most), None)


def _number(accept: Accept, text: str) -> str | None:
    for found in _NUMBER.finditer(text):
        value = float(found[0].replace(",", "."))
        if (accept.min is None or value >= accept.min) and (accept.max is None or value <= accept.max):
            return found[0].replace(",", ".")
    return None


def _phone(accept: Accept, text: str) -> str | None:
    found = _PHONE.search(text)
    if found is None:
        return None
    digits = "".join(_DIGITS.findall(found[0]))
    if len(digits) == RUSSIAN_NUMBER and digits.startswith("8") and not found[0].startswith("+"):
        digits = f"7{digits[1:]}"
    return f"+{digits}"


def _email(accept: Accept, text: str) -> str | None:
    found = _EMAIL.search(text)
    return found[0] if found else None


def _choice(accept: Accept, text: str) -> str | None:
    return chosen(accept.options, text)


def chosen(options: tuple[str, ...], text: str) -> str | None:
    """The option that the text names, by its words or by its number."""
    said = normal_form(text)
    for number, option in enumerate(options, 1):
        if said and said in (normal_form(option), str(number)):
            return option
    return None


_READERS = {
    "text": _text,
    "number": _number,
    "order": _order,
    "phone": _phone,
    "email": _email,
    "choice": _choice,
}
