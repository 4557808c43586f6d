"""Why channels do not get a post, grouped by cause: what is wrong, which channels, and what to change."""

from collections.abc import Iterable
from typing import NamedTuple

from autopost_ingest.dry_run.answer import ChannelDecision, PlanPreview
from autopost_ingest.gateway import ChannelPreview
from autopost_ingest.posts.warnings import ChannelName, ProblemGroup

MOST_CHANNELS = 20
MOST_PROBLEMS = 20

CHANGES = {
    "message_too_long": "shorten it, or let an operator set overflow of these channels to split or truncate",
    "too_much_markup": "use less markup",
    "markup_unsupported": "correct or remove this markup, or send the text without parse_mode",
    "message_empty": "send a text that shows something",
    "too_many_buttons": "send fewer buttons",
    "buttons_unsupported": "send buttons with a url",
    "media_too_large": "send a smaller file",
    "parse_mode_mismatch": "send the parse_mode of the template",
    "template_missing": "an operator adds the template, or takes template_ref off these channels",
    "template_failed": "an operator corrects the template",
    "setting_unknown": "an operator corrects the settings of these channels",
    "platform_unknown": "an operator corrects the platform of these channels",
}
"""By code. For other codes the message says all there is."""
OTHER = "correct this field"

FIELDS = {
    "include_any": "tags",
    "include_all": "tags",
    "exclude": "tags",
    "send_mode": "media",
    "routing.channels": "routing.channels",
    "routing.channel_tags": "routing.channel_tags",
}
ROUTE_CHANGES = {
    "disabled": "an operator enables the channel: autopost channel enable",
    "include_any": "add one of these tags",
    "include_all": "add all of these tags",
    "exclude": "leave these tags out",
    "send_mode": "send what the channel accepts",
    "routing.channels": "add the channel to routing.channels, or leave routing.channels out",
    "routing.channel_tags": "name a tag that the channel has, or leave routing.channel_tags out",
}
"""By the name of the reason for which a post is not routed to a channel."""


class Cause(NamedTuple):
    code: str
    field: str | None
    message: str
    change: str


def compile_problems(decisions: Iterable[ChannelDecision], plans: dict[str, PlanPreview]) -> tuple[ProblemGroup, ...]:
    """Of the channels that take the post and cannot show it."""
    causes: dict[Cause, list[ChannelName]] = {}
    for decision in decisions:
        if decision.outcome != "validation_failed" or decision.profile is None:
            continue
        for problem in plans[decision.profile].problems:
            cause = Cause(problem.code, problem.field, problem.message, CHANGES.get(problem.code, OTHER))
            causes.setdefault(cause, []).append(_name(decision))
    return _groups(causes)


def route_problems(
    channels: Iterable[ChannelPreview], decisions: Iterable[ChannelDecision]
) -> tuple[ProblemGroup, ...]:
    """Of all channels, none of which takes the post. Those that the post names, if it names any, come alone."""
    pairs = list(zip(channels, decisions, strict=True))
    named = [pair for pair in pairs if not any(reason.startswith("routing.") for reason in pair[0].kept_by)]
    causes: dict[Cause, list[ChannelName]] = {}
    for channel, decision in named or pairs:
        changes = "; ".join(ROUTE_CHANGES[reason] for reason in channel.kept_by)
        field = next((FIELDS[reason] for reason in channel.kept_by if reason in FIELDS), None)
        cause = Cause("not_routed", field, "; ".join(decision.route.reasons), changes)
        causes.setdefault(cause, []).append(_name(decision))
    return _groups(causes)


def _groups(causes: dict[Cause, list[ChannelName]]) -> tuple[ProblemGroup, ...]:
    """The most common cause first."""
    ordered = sorted(causes.items(), key=lambda pair: (-len(pair[1]), pair[0].message))[:MOST_PROBLEMS]
    return tuple(
        ProblemGroup(
            code=cause.code,
            field=cause.field,
            message=cause.message,
            change=cause.change,
            channel_count=len(channels),
            channels=tuple(channels[:MOST_CHANNELS]),
        )
        for cause, channels in ordered
    )


def _name(decision: ChannelDecision) -> ChannelName:
    return ChannelName(channel_id=decision.channel_id, title=decision.title, platform=decision.platform)
