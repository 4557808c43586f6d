"""The sections of the status page, each built from its part of the report."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from autopost_monitor.alerts.condition_texts import CONDITION_TEXTS
from autopost_monitor.alerts.text import clean
from autopost_monitor.status.page_markup import Markup, joined, tag
from autopost_monitor.status.page_words import ago, at, lasting, number, pill, until

Row = Mapping[str, Any]

MOST_CHANNELS = 200
IN_TIME = 5
LATE = 60
"""Seconds. A longer wait is highlighted."""
RECENTLY = "in the last ten minutes"
"""Sent deliveries are counted in this window only: a total would have to read all of them."""

_WORST = {"disabled": 0, "paused": 1, "outage": 2, "cooling": 3, "window_closed": 4, "full": 5, "open": 6}


def alerts(open_: Iterable[Row], names: Mapping[str, str], now: datetime) -> Markup:
    shown = [_alert(alert, names, now) for alert in open_]
    if not shown:
        return tag("p", "No open alerts.", cls="card calm good")
    return tag("div", *shown, cls="alerts")


def _alert(alert: Row, names: Mapping[str, str], now: datetime) -> Markup:
    words = CONDITION_TEXTS.get(alert["condition"])
    what = words.what.format(count=alert["count"]) if words else alert["condition"]
    where = names.get(str(alert["workspace_id"]), "")
    causes = [tag("li", _cause(cause)) for cause in alert["causes"]]
    return tag(
        "div",
        tag("strong", _linked(alert, f"{where}: {what}" if where else what)),
        " ",
        ago(alert["since"], now),
        tag("ul", *causes) if causes else None,
        cls="alert",
    )


def _linked(alert: Row, words: str) -> Markup | str:
    """An alert about publications leads to their section."""
    if not alert["condition"].startswith("publications_"):
        return words
    return tag("a", words, href=f"#publications-{alert['workspace_id']}")


def _cause(cause: Row) -> str:
    code = f": {clean(cause['code'])}" if cause.get("code") else ""
    times = f" ×{cause['count']}" if cause.get("count", 1) > 1 else ""
    return f"{clean(cause['name'])}{code}{times}"


def tiles(workspaces: list[Row], staged: list[Row], relay: Row | None, now: datetime) -> Markup:
    def total(status: str) -> int:
        return sum(workspace["counts"].get(status, 0) for workspace in workspaces)

    def lately(action: str) -> int:
        return sum(workspace["activity"].get(action, 0) for workspace in workspaces)

    held, skipped = sum(one["held"] for one in workspaces), sum(one["skipped"] for one in workspaces)
    waiting = sum(one["waiting"] for one in staged)
    return tag(
        "dl",
        _tile("Queued", number(total("queued"))),
        _tile("Sending", number(total("sending") + total("claimed"))),
        _tile("Waiting for retry", number(total("retry")), f"{number(held)} held" if held else ""),
        _tile("Failed permanently", number(total("failed_permanent"))),
        _tile(
            "Dead",
            number(total("dead")),
            f"{number(skipped)} reviewed" if skipped else "",
            "bad" if total("dead") > skipped else "",
        ),
        _tile("Sent", number(lately("sent")), RECENTLY),
        _tile("Duplicates", number(lately("dedup_suppressed")), RECENTLY),
        _waiting("Oldest due", min((due for one in workspaces if (due := _due(one))), default=None), now),
        _tile(
            "Media to fetch",
            number(waiting),
            f"the oldest waits for {lasting(_oldest(staged, now))}" if waiting else "",
        ),
        _lag(relay),
        cls="tiles",
    )


def _tile(name: str, value: str, note: str = "", mood: str = "") -> Markup:
    return tag("div", tag("dt", name), tag("dd", value), tag("small", note), cls=f"tile {mood}".strip())


def _due(workspace: Row) -> datetime | None:
    oldest = workspace["oldest_due"]
    return at(oldest["due_at"]) if oldest else None


def _waiting(name: str, since: datetime | None, now: datetime) -> Markup:
    if since is None:
        return _tile(name, "–", "nothing is due")
    seconds = (now - since).total_seconds()
    return _tile(name, lasting(seconds), "", "odd" if seconds > LATE else "")


def _oldest(staged: list[Row], now: datetime) -> float:
    return max(((now - moment).total_seconds() for one in staged if (moment := at(one["oldest_at"]))), default=0.0)


def _lag(relay: Row | None) -> Markup:
    if relay is None or relay["seconds"] is None:
        return _tile("Audit stream", "–")
    events = f"{number(relay['events'])} events wait" if relay.get("events") else ""
    if relay["seconds"] < IN_TIME:
        return _tile("Audit stream", "up to date", events)
    return _tile(
        "Audit stream", f"{lasting(relay['seconds'])} behind", events, "odd" if relay["seconds"] > LATE else ""
    )


def rates(groups: list[Row], now: datetime) -> Markup:
    return _listed("Calls per second: used and limit", [_rate(group, now) for group in groups], "No channel yet.")


def _rate(group: Row, now: datetime) -> Markup:
    used, allowed = group["used"], group["allowed"]
    meter = tag("meter", min=0, max=allowed, high=allowed * 0.95, value=min(used, allowed)) if allowed else None
    channels = f"{number(group['channels'])} channel{'' if group['channels'] == 1 else 's'}"
    cooled = joined(" · cooling down, ", until(group["until"], now)) if group["until"] else None
    if away := group["away"]:
        cooled = joined(" · the platform does not answer (", clean(away["code"]), ") since ", ago(away["since"], now))
    return tag(
        "li",
        tag("span", tag("span", group["platform"], cls=_platform(group)), " ", group["rate_group"], cls="name"),
        tag("span", f"{number(used)} of {number(allowed)}" if allowed else f"{number(used)}, no limit", cls="side"),
        meter,
        tag("small", channels, cooled),
    )


def bots(of: list[Row], now: datetime) -> Markup | None:
    """Nothing where no bot answers."""
    return _listed("Customers of the bot", [_bot(bot, now) for bot in of], "") if of else None


def _bot(bot: Row, now: datetime) -> Markup:
    words = f"{number(bot['unsent'])} replies to send, {number(bot['waiting'])} chats waiting"
    others = f"{number(bot['handed_over'])} with an operator, {number(bot['stopped'])} stopped the bot"
    oldest = joined(", the oldest ", ago(bot["oldest_at"], now)) if bot["oldest_at"] else None
    return tag(
        "li",
        tag("span", "Unanswered messages", cls="name"),
        tag("span", number(bot["unanswered"]), cls="side"),
        tag("small", words, oldest, " · ", others),
    )


def publications(of: list[Row], now: datetime) -> Markup | None:
    """Nothing where all have ended."""
    rows = [row for one in of for row in _publications(one, now)]
    return _listed("Publications", rows, "", id=f"publications-{of[0]['workspace_id']}") if rows else None


def _publications(one: Row, now: datetime) -> list[Markup]:
    counted = (("scheduled", "scheduled"), ("being sent", "publishing"), ("paused", "paused"), ("failed", "failed"))
    words = ", ".join(f"{number(one[key])} {name}" for name, key in counted if one[key]) or "none to come"
    following = joined(" · the next one ", until(one["next_at"], now)) if one["next_at"] else None
    late = joined(" · the oldest is due since ", ago(one["late_since"], now)) if one["late_since"] else None
    left = (("unpublished", "commands not in the stream"), ("untold", "notices that their owners have not got"))
    behind = "".join(f" · {number(one[key])} {name}" for key, name in left if one[key])
    summary = tag(
        "li",
        tag("span", "Scheduled publications", cls="name"),
        tag("span", number(one["scheduled"] + one["publishing"]), cls="side"),
        tag("small", words, following, late, behind),
    )
    return [summary, *(_trouble(trouble, now) for trouble in one["troubles"])]


def _trouble(trouble: Row, now: datetime) -> Markup:
    return tag(
        "li",
        tag("span", clean(trouble["channel"]), cls="name"),
        tag("span", pill(trouble["status"]), cls="side"),
        tag(
            "small",
            clean(trouble["code"]) or "no reason",
            " · ",
            ago(trouble["since"], now),
            " · ",
            tag("code", f"autopost why {trouble['publication_id']}"),
        ),
    )


def errors(top: list[Row], now: datetime) -> Markup:
    rows = [
        tag(
            "li",
            tag("span", tag("code", error["code"] or "unknown"), cls="name"),
            tag("span", f"×{number(error['count'])}", cls="side"),
            tag("small", f"{error['action']}, {error['scope'] or 'no scope'}, last ", ago(error["last_at"], now)),
        )
        for error in top
    ]
    return _listed("Errors of the last ten minutes", rows, "None.")


def channels(of: list[Row], now: datetime, *, all_of_them: bool) -> Markup:
    worst = sorted(of, key=lambda one: (_WORST.get(one["state"], 9), -one["waiting"]))
    rows = [_channel(channel, now) for channel in worst[:MOST_CHANNELS]]
    if len(worst) > MOST_CHANNELS:
        rows.append(tag("li", tag("small", f"and {number(len(worst) - MOST_CHANNELS)} more")))
    nothing = "No channel yet." if all_of_them else "All channels are open."
    return _listed("Channels" if all_of_them else "Channels that are not open", rows, nothing)


def _channel(channel: Row, now: datetime) -> Markup:
    said = [clean(channel["reason"]), until(channel["until"], now)]
    why = joined(*(part for one in said if one for part in (one, " · ")))
    counted = (("wait", "waiting"), ("sending", "sending"), ("held", "held"))
    work = [f"{number(channel[key])} {words}" for words, key in counted if channel[key]]
    name = channel["title"] or channel["channel_id"]
    return tag(
        "li",
        tag("span", tag("span", channel["platform"], cls=_platform(channel)), " ", name, cls="name"),
        tag("span", pill(channel["state"]), cls="side"),
        tag("small", why, ", ".join(work) or "idle"),
    )


def notices(waiting: list[Row], now: datetime) -> Markup | None:
    """``None`` unless a notice is undelivered."""
    if not waiting:
        return None
    rows = [
        tag(
            "li",
            tag("span", one["target"], cls="name"),
            tag("span", f"{number(one['waiting'])} waiting", cls="side"),
            tag("small", one["error"] or "being sent", " · since ", ago(one["oldest_at"], now)),
        )
        for one in waiting
    ]
    return _listed("Alert notices not delivered yet", rows, "")


def _listed(title: str, rows: list[Markup], nothing: str, **attributes: str) -> Markup:
    body = tag("ul", *rows, cls="card rows") if rows else tag("p", nothing, cls="card calm")
    return tag("div", tag("h3", title), body, **attributes)


def _platform(row: Row) -> str:
    return row["platform"] if row["platform"] in ("telegram", "max") else ""
