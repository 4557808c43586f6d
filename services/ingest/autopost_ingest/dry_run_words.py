"""The reasons of a dry run in words; the decisions themselves were made by the database."""

from datetime import datetime
from typing import Literal

from autopost_ingest.gateway import ChannelPreview, PostPreview
from autopost_ingest.normalize import Normalized


def verdict_reason(verdict: Literal["accepted", "duplicate", "rate_limited"], found: PostPreview) -> str:
    match verdict:
        case "rate_limited":
            return f"the endpoint is over its rate; it would take the post in {found.retry_after_ms} ms"
        case "duplicate":
            assert found.receipt is not None  # noqa: S101  that is what makes it one
            what = "its source_ref" if found.receipt.of == "source_ref" else "the same body"
            return f"the endpoint has {what} from run {found.receipt.run_id}, until {_time(found.receipt.until)}"
        case "accepted":
            return "the post would be taken in"


def why_not_routed(channel: ChannelPreview, normalized: Normalized) -> tuple[str, ...]:
    """Of a channel that is routed: what let the post through."""
    if channel.routed:
        return ("its filter lets the post through" if channel.facts.route_filter else "it has no filter",)
    return tuple(_kept_by(name, channel, normalized) for name in channel.kept_by)


def wait_reasons(channel: ChannelPreview, scheduled_for: datetime | None) -> tuple[str, ...]:
    facts = channel.facts
    words = {
        "scheduled_for": f"the post is scheduled for {_time(scheduled_for)}",
        "pause": f"the channel is paused until {_time(facts.paused_until)}",
        "rate": f"the channel or its rate group rests until {_time(facts.cooled_until)}",
        "window": "its posting window is closed at that time",
    }
    return tuple(words[name] for name in channel.waits_for)


def _kept_by(name: str, channel: ChannelPreview, normalized: Normalized) -> str:
    facts = channel.facts
    listed = ", ".join((facts.route_filter or {}).get(name, ()))
    tags = ", ".join(normalized.tags) or "none"
    hints = ", ".join(normalized.channel_tags)
    words = {
        "disabled": "the channel is disabled",
        "include_any": f"its filter wants one of the tags {listed}; the post has {tags}",
        "include_all": f"its filter wants all of the tags {listed}; the post has {tags}",
        "exclude": f"its filter excludes the tags {listed}; the post has {tags}",
        "send_mode": f"it takes only {facts.send_mode}, and this post is {normalized.content.type}",
        "routing.channels": "routing.channels does not name it",
        "routing.channel_tags": f"it has none of the tags in routing.channel_tags: {hints}",
    }
    return words[name]


def _time(moment: datetime | str | None) -> str:
    if moment == "infinity":
        return "somebody resumes it"
    if isinstance(moment, str):
        moment = datetime.fromisoformat(moment)
    return moment.isoformat() if moment else "further notice"
