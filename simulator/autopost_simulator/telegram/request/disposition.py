"""``Content-Disposition`` of a multipart part, as the Bot API server reads it.

Values may be quoted, with ``\\`` as escape, or bare up to the next ``;``; both are URL-decoded. Only ``filename``
makes a part a file: ``filename*`` is ignored.
"""

from dataclasses import dataclass
from urllib.parse import unquote

from autopost_simulator.telegram.refusal import TelegramError

_SPACES = " \t\r\n"


@dataclass(slots=True, frozen=True)
class Disposition:
    """``filename`` is ``None`` for a parameter, and may be empty for a file."""

    name: str
    filename: str | None


def read_disposition(header: str) -> Disposition:
    if not header.startswith("form-data;"):
        raise _bad("expected form-data content disposition")
    found: dict[str, str] = {}
    rest = header[len("form-data;") :]
    while "=" in (rest := rest.strip(_SPACES)):
        key, _, rest = rest.partition("=")
        rest = rest.lstrip(_SPACES)
        value, rest = _quoted(rest) if rest.startswith('"') else _token(rest)
        found[key.strip(_SPACES)] = unquote(value, errors="replace")
    if not found.get("name"):
        raise _bad("field name in multipart/form-data not found")
    return Disposition(found["name"], found.get("filename"))


def _quoted(text: str) -> tuple[str, str]:
    value, at = [], 1
    while text[at : at + 1] != '"':
        at += text[at : at + 1] == "\\"
        if at >= len(text):
            raise _bad("unclosed quoted string in Content-Disposition header")
        value.append(text[at])
        at += 1
    rest = text[at + 1 :].lstrip(_SPACES)
    if rest and not rest.startswith(";"):
        raise _bad("expected ';' in Content-Disposition header")
    return "".join(value), rest[1:]


def _token(text: str) -> tuple[str, str]:
    value, _, rest = text.partition(";")
    return value.strip(_SPACES), rest


def _bad(reason: str) -> TelegramError:
    return TelegramError(400, f"Bad Request: {reason}")
