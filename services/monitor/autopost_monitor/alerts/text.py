"""The text of a notice: condition, count, start, first causes, and the commands that show details.

Plain text, the same for chat, mail and webhook. Texts of senders and platforms are redacted and put on one line.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta

from autopost_runtime.secrets.redaction import redact
from msgspec import Struct

from autopost_monitor.alerts.condition_texts import CONDITION_TEXTS, ConditionText
from autopost_monitor.alerts.gateway import Cause, Facts

LONGEST_NAME = 80


class NoticeText(Struct, frozen=True):
    subject: str
    body: str

    @property
    def text(self) -> str:
        return f"{self.subject}\n\n{self.body}" if self.body else self.subject


def notice_text(facts: Facts) -> NoticeText:
    lines = _snapshot(facts) if facts.kind == "snapshot" else _body(facts)
    return NoticeText(f"autopost: {_subject(facts)}", "\n".join(lines))


def _subject(facts: Facts) -> str:
    if facts.kind == "snapshot":
        return "state of the queue"
    where = f"{clean(facts.workspace)}: " if facts.workspace else ""
    what = _words(facts).what.format(count=facts.count)
    match facts.kind:
        case "recovered":
            return f"{where}resolved: {what}"
        case "reminder":
            return f"{where}still open: {what}"
        case _:
            return f"{where}{what}"


def _body(facts: Facts) -> Iterator[str]:
    if facts.kind == "recovered" and facts.recovered_at and facts.opened_at:
        yield f"It started at {moment(facts.opened_at)} and lasted {duration(facts.recovered_at - facts.opened_at)}."
        return
    if facts.since:
        yield f"Since {moment(facts.since)}, for {duration(facts.at - facts.since)}."
    yield from (f"• {_cause(cause)}" for cause in facts.causes)
    if facts.snapshot:
        yield from _snapshot(facts)
    yield f"For details run: {_look(facts)}"
    for cause in facts.causes:
        if cause.id:
            yield f"                 autopost why {clean(cause.id)}"
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


def _words(facts: Facts) -> ConditionText:
    return CONDITION_TEXTS.get(facts.condition) or ConditionText(f"{clean(facts.condition)}: {{count}}")


def clean(text: str | None) -> str:
    """One line of limited length, without secrets and control characters."""
    line = " ".join("".join(sign if sign.isprintable() else " " for sign in text or "").split())
    redacted = redact(line)
    return redacted if len(redacted) <= LONGEST_NAME else f"{redacted[: LONGEST_NAME - 1]}…"


def moment(at: datetime) -> str:
    return at.strftime("%Y-%m-%d %H:%M UTC")


def duration(length: timedelta) -> str:
    seconds = max(0, int(length.total_seconds()))
    for size, name in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds // size} {name}"
    return f"{seconds} s"
