"""A notice in words: what, how many, since when, the first causes, and the command that shows more.

Plain text, for a chat, a mail and a webhook alike. Whatever was written by others is redacted and kept to one line.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta

from autopost_runtime.redaction import redact
from msgspec import Struct

from autopost_monitor.alert_gateway import Cause, Facts
from autopost_monitor.conditions import WORDS, Words

LONGEST_NAME = 80


class Letter(Struct, frozen=True):
    subject: str
    body: str

    @property
    def text(self) -> str:
        return f"{self.subject}\n\n{self.body}" if self.body else self.subject


def letter(facts: Facts) -> Letter:
    lines = _snapshot(facts) if facts.kind == "snapshot" else _body(facts)
    return Letter(f"autopost: {_subject(facts)}", "\n".join(lines))


def _subject(facts: Facts) -> str:
    if facts.kind == "snapshot":
        return "how the queue stands"
    where = f"{clean(facts.workspace)}: " if facts.workspace else ""
    what = _words(facts).what.format(count=facts.count)
    match facts.kind:
        case "recovered":
            return f"{where}over: {what}"
        case "reminder":
            return f"{where}still: {what}"
        case _:
            return f"{where}{what}"


def _body(facts: Facts) -> Iterator[str]:
    if facts.kind == "recovered" and facts.recovered_at and facts.opened_at:
        yield f"It lasted from {moment(facts.opened_at)} for {duration(facts.recovered_at - facts.opened_at)}."
        return
    if facts.since:
        yield f"Since {moment(facts.since)}, for {duration(facts.at - facts.since)}."
    yield from (f"• {_cause(cause)}" for cause in facts.causes)
    if facts.snapshot:
        yield from _snapshot(facts)
    yield f"Look closer: {_look(facts)}"
    for cause in facts.causes:
        if cause.id:
            yield f"             autopost why {clean(cause.id)}"
            break


def _cause(cause: Cause) -> str:
    code = f": {clean(cause.code)}" if cause.code else ""
    times = f" ×{cause.count}" if cause.count and cause.count > 1 else ""
    return f"{clean(cause.name)}{code}{times}"


def _snapshot(facts: Facts) -> Iterator[str]:
    seen = facts.snapshot or {}
    yield "Queue: " + ", ".join(f"{clean(status)} {count}" for status, count in sorted(seen.get("counts", {}).items()))
    errors = [f"{clean(error.get('code') or 'unknown')} ×{error['count']}" for error in seen.get("top_errors", [])]
    if errors:
        yield "Errors of the last ten minutes: " + ", ".join(errors)


def _look(facts: Facts) -> str:
    workspace = f" --workspace {facts.workspace_id}" if facts.workspace_id else ""
    return f"{_words(facts).look}{workspace}"


def _words(facts: Facts) -> Words:
    return WORDS.get(facts.condition) or Words(f"{clean(facts.condition)}: {{count}}")


def clean(text: str | None) -> str:
    """One line without secrets and control characters, not too long."""
    line = " ".join("".join(sign if sign.isprintable() else " " for sign in text or "").split())
    told = redact(line)
    return told if len(told) <= LONGEST_NAME else f"{told[: LONGEST_NAME - 1]}…"


def moment(at: datetime) -> str:
    return at.strftime("%Y-%m-%d %H:%M UTC")


def duration(length: timedelta) -> str:
    seconds = max(0, int(length.total_seconds()))
    for size, name in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds // size} {name}"
    return f"{seconds} s"
