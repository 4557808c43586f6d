"""The words of a notice to an owner: what happened to the publication, and what to do. Nothing of the post itself."""

from collections.abc import Iterator, Mapping
from zoneinfo import ZoneInfo

from autopost_monitor.alerts.text import NoticeText, clean
from autopost_monitor.owners.gateway import OwnerFacts, OwnerNotice

WHAT: Mapping[str, tuple[str, str]] = {
    "missed": ("its time passed before it could be sent", "Give it another time, or cancel it."),
    "unconfirmed": (
        "the platform did not answer, so it may be in the channel",
        "Look into the channel, then say whether it is there: `sent`, or `resend` if it is not.",
    ),
    "plan_changed": (
        "the channel would show something else than what was approved",
        "Edit it, even without a change; have what it shows now approved, and give it a time again.",
    ),
    "channel_disabled": (
        "its channel is disabled",
        "Ask the operator to enable the channel, then give it a time again.",
    ),
    "file_id_expired": (
        "the platform does not have its file any more",
        "Upload the file again and edit the publication.",
    ),
    "bot_not_in_channel": ("the bot cannot reach the channel", "Ask the operator to look at the bot, then retry."),
    "channel_restricted": ("the bot may not post in the channel", "Give the bot the right to post, then retry."),
    "rate_limit": ("the platform asked to wait too often", "Retry later."),
    "media_group": ("the platform refused the album", "Look at the item that the error names; retry, or edit it."),
    "content": ("the platform refused its text, buttons or files", "Edit it and have it approved again."),
    "platform": ("the platform failed", "Retry later."),
}
UNKNOWN = ("it was not sent", "Ask the operator.")


def owner_text(notice: OwnerNotice) -> NoticeText:
    facts = notice.notice
    words, _ = WHAT.get(facts.code, UNKNOWN)
    where = f"{facts.channel.platform} {clean(facts.channel.title)}"
    return NoticeText(f"autopost: publication {facts.status} in {where}: {words}", "\n".join(_body(notice)))


def _body(notice: OwnerNotice) -> Iterator[str]:
    facts = notice.notice
    yield f"Publication {notice.publication_id}, version {notice.version}"
    if facts.scheduled_at:
        yield f"Scheduled for {_when(facts)}"
    if facts.error:
        code, message = clean(str(facts.error.get("code", ""))), clean(str(facts.error.get("message", "")))
        yield f"Error: {code}" + (f": {message}" if message else "")
    yield WHAT.get(facts.code, UNKNOWN)[1]
    yield f"For details run: autopost why {notice.publication_id}"


def _when(facts: OwnerFacts) -> str:
    moment = facts.scheduled_at
    if moment is None:
        return ""
    try:
        return f"{moment.astimezone(ZoneInfo(facts.timezone or 'UTC')):%Y-%m-%d %H:%M %Z}"
    except (KeyError, ValueError, OSError):  # a zone that is not known here
        return f"{moment:%Y-%m-%d %H:%M} UTC"
