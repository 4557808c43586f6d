"""The output of `autopost why`. Texts of platforms and senders are shown without control characters."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

Entry = Mapping[str, Any]

RELEASED = {
    "time": "automatic, at that time",
    "settings": "not automatic: change the settings",
    "commit": "automatic, when a send in progress ends",
    "monitor": "automatic, the monitor releases it in its next run; to release it now:",
    "platform": "automatic, when the platform answers: it is asked again every minute, or sooner",
    "dispatcher": "automatic, when a dispatcher claims it",
    "ingest": "automatic, when an ingest worker takes it",
    "bot": "automatic, when the bot takes its chat",
}
FIRST = ("code", "message", "operator", "reason")
CLAIM_SILENCE = timedelta(minutes=1)
"""After this long without a claim, perhaps no dispatcher is running."""


def lines(answer: Entry) -> Iterator[str]:
    at = datetime.fromisoformat(answer["at"])
    for nth, entry in enumerate(answer["found"]):
        if nth:
            yield ""
        yield from FORMATTERS[entry["kind"]](entry, at)


def _delivery(entry: Entry, at: datetime) -> Iterator[str]:
    attempts = f"attempt {entry['attempt']} of {entry['max_attempts']}"
    yield f"delivery {entry['delivery_id']}: {entry['status']}, {attempts}"
    yield _field("to", _channel_name(entry["channel"]))
    yield _field("message", entry["message_id"])
    if entry["gate"]:
        yield from _gate(entry["gate"], at)
    if entry["ended"]:
        yield from _ended(entry["ended"], at)
    yield from _history(entry["history"])


def _publication(entry: Entry, at: datetime) -> Iterator[str]:
    yield f"publication {entry['publication_id']}: {entry['status']}, version {entry['version']}"
    yield _field("to", _channel_name(entry["channel"]))
    if entry["scheduled_at"]:
        yield _field("scheduled", f"{_time(entry['scheduled_at'])} ({_distance(entry['scheduled_at'], at)})")
    yield _field("people", _pairs(entry, ("created_by", "approved_by", "owner")) or "nobody is named")
    if entry["gate"]:
        yield from _gate(entry["gate"], at)
    elif not entry["ended"]:
        yield _field("delivery", f"{entry['delivery_id']}, see below")
    if entry["ended"]:
        yield from _ended(entry["ended"], at)
    for notice in entry["notices"]:
        yield _field("owner", _notice(notice))
    yield from _history(entry["history"])


def _notice(notice: Entry) -> str:
    about = f"{notice['code']} by {notice['target']}"
    if "told_at" in notice:
        return f"{about}: told {_time(notice['told_at'])}"
    failed = f"{notice['attempts']} tries" + (f", last {_clean(notice['error'])}" if "error" in notice else "")
    if "given_up_at" in notice:
        return f"{about}: not told, given up {_time(notice['given_up_at'])}, {failed}"
    return f"{about}: not told yet, {failed}, next {_time(notice['next_try_at'])}"


def _update(entry: Entry, at: datetime) -> Iterator[str]:
    """Of a customer; without what was written."""
    yield f"{entry['update_kind'] or 'update'} of a customer in chat {entry['chat']}"
    if entry["stored_at"]:
        yield _field("stored", f"{_time(entry['stored_at'])}, trace {entry['trace_id']}")
    if entry["ignored"]:
        yield _field("ignored", entry["ignored"])
    if entry["outcome"]:
        states = f"{entry['state_before']} → {entry['state_after']}"
        rule = f", rule {entry['rule']}" if entry["rule"] else ""
        yield _field("handled", f"{_time(entry['handled_at'])}: {entry['outcome']}, {states}{rule}")
    if reply := entry["reply"]:
        ended = "sent" if reply["sent_at"] else "failed" if reply["failed_at"] else "waits since"
        when = _time(reply["sent_at"] or reply["failed_at"] or reply["decided_at"])
        yield _field("reply", f"{reply['reply_id']}, {ended} {when}, attempt {reply['attempt']}")
        if reply["error"]:
            yield _field("last error", _pairs(reply["error"]))
    if entry["gate"]:
        yield from _gate(entry["gate"], at)


def _message(entry: Entry, at: datetime) -> Iterator[str]:
    yield f"message {entry['message_id']}: deliveries {entry['total']}, posted {entry['seen_count']}×"
    yield _field("posted", _time(entry["created_at"]) + _also("last", entry["last_seen_at"], entry["created_at"]))
    if entry["source_ref"]:
        yield _field("source_ref", _clean(entry["source_ref"]))
    for state in entry["states"]:
        yield _field(f"{state['count']:>6}", f"{state['status']}: {state.get('gate') or state.get('outcome')}")
    for twin in entry["suppressed"]:
        yield _field(
            "duplicate", f"{_clean(twin['title'] or twin['channel_id'])}{_also('at', twin['at'])}, {twin['twin']}"
        )
    for delivery in entry["deliveries"]:
        yield ""
        yield f"  {delivery['delivery_id']}  {_clean(delivery.get('title') or delivery['channel_id'])}"
        yield from _indented(_gate(delivery, at) if delivery.get("gate") else _ended(delivery, at))
    yield from _more(entry["total"] - len(entry["deliveries"]), "deliveries")
    yield from _elsewhere(entry)
    yield ""
    yield from _history(entry["history"])


def _elsewhere(entry: Entry) -> Iterator[str]:
    if entry["elsewhere"]:
        yield ""
        yield _field("not sent to", "these channels (by the current routing)")
    for channel in entry["elsewhere"]:
        kept_by = ", ".join(channel["kept_by"])
        yield _field("", f"{channel['platform']} {_clean(channel['title'] or channel['channel_id'])}: {kept_by}")
    yield from _more(entry["elsewhere_total"] - len(entry["elsewhere"]), "channels")


def _channel(entry: Entry, at: datetime) -> Iterator[str]:
    yield f"channel {_channel_name(entry['channel'])}: {entry['gate']['gate'] if entry['gate'] else 'open'}"
    if entry["gate"]:
        yield from _gate(entry["gate"], at)
    queue = entry["queue"]
    counts = f"{queue['waiting']} waiting, {queue['later']} later, {queue['held']} held, {queue['sending']} sending"
    yield _field("queue", counts + _also("the oldest", queue["oldest_at"]))
    yield _field("rate group", f"{_clean(entry['rate_group'])}, error streak {entry['error_streak']}")
    yield from _history(entry["history"])


def _post(entry: Entry, at: datetime) -> Iterator[str]:
    yield f"staged post {entry['post_id']}: {entry['status']}, attempt {entry['attempt']}"
    yield _field("run", f"{entry['run_id']}, trace {entry['trace_id']}")
    if entry["gate"]:
        yield from _gate(entry["gate"], at)
    if entry["error"]:
        yield _field("last error", _pairs(entry["error"], ("code", "field", "host", "message")))
    if entry["finished_at"]:
        yield _field("ended", _time(entry["finished_at"]))
    for item in entry["media"]:
        about = _pairs(item, ("type", "host", "state", "waits_for", "error"))
        yield _field(f"media[{item['place']}]", about + _also("since", item.get("since")))
    yield from _history(entry["history"])


def _run(entry: Entry, at: datetime) -> Iterator[str]:
    about = "no channel matches the posts below" if entry["unrouted"] else "no posts found"
    yield f"run {entry['run_id']}: {entry['run_kind']}, {about}"
    yield _field("started", _time(entry["started_at"]) + _also("finished", entry["finished_at"]))
    yield _field("counted", ", ".join(f"{name} {_clean(count)}" for name, count in entry["stats"].items()) or "nothing")
    for post in entry["unrouted"]:
        yield _field(
            "no channel", _pairs(post, ("tags", "source_id", "source_ref", "message")) + _also("at", post["at"])
        )


FORMATTERS = {
    "publication": _publication,
    "delivery": _delivery,
    "message": _message,
    "channel": _channel,
    "post": _post,
    "run": _run,
    "update": _update,
}


def _gate(gate: Entry, at: datetime) -> Iterator[str]:
    cause = gate.get("cause") or {}
    if gate["gate"] == "queued_behind":
        yield from _queued_behind(gate, cause, at)
        return
    until = f", until {_time(gate['until'])} ({_distance(gate['until'], at)})" if gate.get("until") else ""
    yield _field("held by", gate["gate"] + _also("since", gate.get("since")) + until)
    if cause:
        yield _field("because", _pairs(cause))
    yield from _release(gate)
    if gate.get("later"):
        yield _field("then", ", ".join(gate["later"]))


def _queued_behind(gate: Entry, cause: Entry, at: datetime) -> Iterator[str]:
    behind = cause["behind"]
    yield _field(
        "held by",
        f"queued_behind: {behind} deliveries before it in its channel" + _also("due since", gate.get("since")),
    )
    yield _field("release", RELEASED["dispatcher"])
    claimed = cause.get("last_claimed_at")
    if claimed is None or at - datetime.fromisoformat(claimed) > CLAIM_SILENCE:
        said = f"since {_time(claimed)}" if claimed else "so far"
        yield _field("", f"no dispatcher has claimed in this workspace {said}; check that one is running")


def _release(gate: Entry) -> Iterator[str]:
    if words := RELEASED.get(gate["released_by"]):
        yield _field("release", words)
    if gate.get("command"):
        yield _field("" if words else "release", gate["command"])
    if gate["gate"] == "hold":
        yield _field("", "check the channel first: if the message is there, use `sent` instead of `resend`")


def _ended(ended: Entry, at: datetime) -> Iterator[str]:
    detail = dict(ended["detail"])
    yield _field("ended", f"{ended['outcome']}, {_time(ended['at'])} ({_distance(ended['at'], at)})")
    for part in detail.pop("parts", []):
        yield _field(f"part {part['part']}", ", ".join(_clean(one) for one in part["ids"]))
    for problem in detail.pop("problems", []):
        yield _field("problem", _pairs(problem) if isinstance(problem, Mapping) else _clean(problem))
    if twin := detail.pop("twin", None):
        yield _field("twin", _pairs(twin))
    if detail:
        yield _field("where" if ended["outcome"] in ("sent", "published") else "because", _pairs(detail))
    if ended.get("twin_gate"):
        yield from _gate(ended["twin_gate"], at)
    if ended.get("command"):
        yield _field("to retry" if ended["outcome"] == "failed" else "to requeue", ended["command"])


def _history(history: list[Entry]) -> Iterator[str]:
    for nth, event in enumerate(history):
        after = f"+{_length(timedelta(milliseconds=event['after_ms']))}" if "after_ms" in event else ""
        attempt = f"attempt {event['attempt']}" if event.get("attempt") else ""
        action = event["action"] + (f" ×{event['count']}" if "count" in event else "")
        told = f"{_time(event['at'])}  {after:>12}  {action:<22} {attempt:<11} {_event_details(event)}"
        yield _field("" if nth else "history", told.rstrip())


def _event_details(event: Entry) -> str:
    names = ("channel", "code", "message", "operator", "reason", "provider_message_id", "payload_ref", "twin", "run_id")
    words = _pairs(event, names)
    return f"{words}{_also('until', event.get('until'))}".removeprefix(", ")


def _more(count: int, what: str) -> Iterable[str]:
    return [_field("", f"… and {count} more {what}; --all shows them")] if count > 0 else []


def _indented(told: Iterable[str]) -> Iterator[str]:
    return (f"  {line}" for line in told)


def _field(name: str, words: Any) -> str:
    return f"  {name:<11} {words}"


def _channel_name(channel: Entry) -> str:
    title = _clean(channel["title"] or "untitled")
    return f"{channel['platform']} {title} ({_clean(channel['target_id'])}), {channel['channel_id']}"


def _pairs(given: Entry, names: Iterable[str] = ()) -> str:
    """All pairs without ``names``, in a fixed order: JSON objects of the database have none."""
    kept = ((name, given.get(name)) for name in names or sorted(given, key=lambda name: (name not in FIRST, name)))
    return ", ".join(f"{name}: {_clean(value)}" for name, value in kept if value is not None)


def _clean(value: Any) -> str:
    """One line without control characters."""
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return "".join(character if character.isprintable() else " " for character in text)


def _also(name: str, moment: str | None, unless: str | None = None) -> str:
    return f", {name} {_time(moment)}" if moment and moment != unless else ""


def _time(moment: str) -> str:
    if moment == "infinity":
        return "resumed by an operator"
    return f"{datetime.fromisoformat(moment):%Y-%m-%d %H:%M:%S}Z"


def _distance(moment: str, at: datetime) -> str:
    away = datetime.fromisoformat(moment) - at
    return f"in {_length(away)}" if away > timedelta() else f"{_length(-away)} ago"


def _length(length: timedelta) -> str:
    seconds = length.total_seconds()
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    whole = int(seconds)
    sizes = {"d": whole // 86400, "h": whole // 3600 % 24, "min": whole // 60 % 60, "s": whole % 60}
    told = [f"{count} {unit}" for unit, count in sizes.items() if count]
    return " ".join(told[:2])
