"""Publications as an iCalendar file (RFC 5545)."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from autopost_runtime.secrets.redaction import quoted

LENGTH = timedelta(minutes=5)
LONGEST_TITLE = 80
LINE = 75
"""Octets; a longer line is folded."""

STATES = {"cancelled": "CANCELLED", "scheduled": "CONFIRMED", "publishing": "CONFIRMED", "published": "CONFIRMED"}


def calendar(publications: Iterable[dict[str, Any]]) -> bytes:
    """Those that have a time."""
    lines = ["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//autopost//publications//EN", "CALSCALE:GREGORIAN"]
    for publication in publications:
        if publication["scheduled_at"]:
            lines += _event(publication)
    lines.append("END:VCALENDAR")
    return b"".join(_folded(line) for line in lines)


def _event(publication: dict[str, Any]) -> Iterator[str]:
    begin = datetime.fromisoformat(publication["scheduled_at"])
    yield "BEGIN:VEVENT"
    yield f"UID:{publication['publication_id']}@autopost"
    yield f"DTSTAMP:{_time(datetime.fromisoformat(publication['updated_at']))}"
    yield f"DTSTART:{_time(begin)}"
    yield f"DTEND:{_time(begin + LENGTH)}"
    yield f"SEQUENCE:{publication['version']}"
    yield f"STATUS:{STATES.get(publication['status'], 'TENTATIVE')}"
    yield f"SUMMARY:{_text(_title(publication))}"
    yield f"DESCRIPTION:{_text(_about(publication))}"
    yield "END:VEVENT"


def _title(publication: dict[str, Any]) -> str:
    words = " ".join(publication["creative_draft"].get("text", "").split())
    return f"[{publication['status']}] {quoted(words, LONGEST_TITLE) or publication['media_type']}"


def _about(publication: dict[str, Any]) -> str:
    facts = {name: publication[name] for name in ("channel_id", "media_type", "owner", "approved_by", "pause_code")}
    return "\n".join(f"{name}: {value}" for name, value in facts.items() if value)


def _time(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y%m%dT%H%M%SZ}"


def _text(value: str) -> str:
    kept = "".join(one for one in value if one == "\n" or one.isprintable())
    return kept.replace("\\", "\\\\").replace(";", "\\;").replace(",", "\\,").replace("\n", "\\n")


def _folded(line: str) -> bytes:
    """At most 75 octets a line, never inside a character."""
    pieces: list[bytes] = []
    piece = b""
    for character in line:
        octets = character.encode()
        if len(piece) + len(octets) > LINE - bool(pieces):
            pieces.append(piece)
            piece = b""
        piece += octets
    return b"\r\n ".join([*pieces, piece]) + b"\r\n"
