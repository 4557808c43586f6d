"""Texts for the decisions of a dry run; the database made the decisions."""

from datetime import datetime
from typing import Literal

from autopost_runtime.secrets.redaction import quoted

from autopost_ingest.gateway import ChannelPreview, PostPreview
from autopost_ingest.posts.normalize import Normalized


def verdict_reason(verdict: Literal["accepted", "refused", "duplicate", "rate_limited"], found: PostPreview) -> str:
    match verdict:
        case "rate_limited":
            return f"rate limit exceeded for this endpoint; retry after {found.retry_after_ms} ms"
        case "duplicate":
            assert found.receipt is not None  # noqa: S101  a duplicate always has a receipt
            what = "the same source_ref" if found.receipt.of == "source_ref" else "the same body"
            return f"duplicate: run {found.receipt.run_id} has {what}; remembered until {_time(found.receipt.until)}"
        case "accepted" | "refused":
            return "the post would be accepted"


def why_not_routed(channel: ChannelPreview, normalized: Normalized) -> tuple[str, ...]:
    """For a routed channel: why it matched."""
    if channel.routed:
        return ("route_filter matches the post" if channel.facts.route_filter else "the channel has no route_filter",)
    return tuple(_kept_by(name, channel, normalized) for name in channel.kept_by)


def wait_reasons(channel: ChannelPreview, scheduled_for: datetime | None) -> tuple[str, ...]:
    facts = channel.facts
    words = {
        "scheduled_for": f"scheduled_for is {_time(scheduled_for)}",
        "pause": f"the channel is paused until {_time(facts.paused_until)}",
        "rate": f"the channel or its rate group is rate limited until {_time(facts.cooled_until)}",
        "window": "the posting window of the channel is closed",
    }
    return tuple(words[name] for name in channel.waits_for)


def _kept_by(name: str, channel: ChannelPreview, normalized: Normalized) -> str:
    facts = channel.facts
    listed = quoted(", ".join((facts.route_filter or {}).get(name, ())))
    tags = quoted(", ".join(normalized.tags)) or "none"
    hints = quoted(", ".join(normalized.channel_tags))
    words = {
        "disabled": "the channel is disabled",
        "include_any": f"route_filter requires one of the tags {listed}; the post has {tags}",
        "include_all": f"route_filter requires all of the tags {listed}; the post has {tags}",
        "exclude": f"route_filter excludes the tags {listed}; the post has {tags}",
        "send_mode": f"the channel accepts only {facts.send_mode}; this post is {normalized.content.type}",
        "routing.channels": "the channel is not in routing.channels",
        "routing.channel_tags": f"the channel has none of the tags in routing.channel_tags: {hints}",
    }
    return words[name]


def _time(moment: datetime | str | None) -> str:
    if moment == "infinity":
        return "it is resumed by hand"
    if isinstance(moment, str):
        moment = datetime.fromisoformat(moment)
    return moment.isoformat() if moment else "further notice"
