"""Judge what a post would reach: nobody, which refuses it; fewer channels or later than meant, which is a warning."""

from collections.abc import Sequence
from itertools import chain

from msgspec import Struct

from autopost_ingest.dry_run.answer import ChannelDecision, PlanPreview, Refused
from autopost_ingest.dry_run.problems import compile_problems, route_problems
from autopost_ingest.gateway import PostPreview
from autopost_ingest.posts.warnings import (
    ChannelsWarning,
    PostWarning,
    ProblemGroup,
    WindowWarning,
    unused_tags,
)


class Judgement(Struct, frozen=True, kw_only=True):
    refusal: Refused | None = None
    problems: tuple[ProblemGroup, ...] = ()
    warnings: tuple[PostWarning, ...] = ()


def judge(
    found: PostPreview, decisions: Sequence[ChannelDecision], plans: dict[str, PlanPreview], tags: Sequence[str]
) -> Judgement:
    """``tags``: those of the post, whatever its content was first seen with."""
    outcomes = {decision.outcome for decision in decisions}
    if outcomes <= {"not_routed"}:
        return Judgement(refusal=_unrouted(found), problems=route_problems(found.channels, decisions))
    problems = compile_problems(decisions, plans)
    if outcomes <= {"not_routed", "validation_failed"}:
        return Judgement(refusal=_unshowable(decisions), problems=problems)
    warnings: tuple[PostWarning, ...] = (
        *_failing(problems, decisions),
        *unused_tags(tags, _filter_tags(found)),
        *_closed(found, decisions),
    )
    return Judgement(problems=problems, warnings=warnings)


def _unrouted(found: PostPreview) -> Refused:
    disabled = [channel for channel in found.channels if channel.kept_by == ("disabled",)]
    if disabled:
        return Refused(
            status=503,
            code="no_channel_enabled",
            detail=f"all channels that this post goes to are disabled ({len(disabled)}); retry when one is enabled",
        )
    why = "`problems` says why" if found.channels else "the workspace has no channels"
    return Refused(status=422, code="no_channel", detail=f"no channel takes this post, nothing is sent; {why}")


def _unshowable(decisions: Sequence[ChannelDecision]) -> Refused:
    failed = sum(decision.outcome == "validation_failed" for decision in decisions)
    return Refused(
        status=422,
        code="validation_failed",
        detail=f"no channel can show this post ({failed} tried), nothing is sent; correct what `problems` names and "
        "send it again, with the same source_ref if it has one",
    )


def _failing(problems: tuple[ProblemGroup, ...], decisions: Sequence[ChannelDecision]) -> tuple[ChannelsWarning, ...]:
    if not problems:
        return ()
    routed = [decision for decision in decisions if decision.outcome != "not_routed"]
    failed = sum(decision.outcome == "validation_failed" for decision in routed)
    said = (
        f"{failed} of {len(routed)} channels cannot show this post and do not get it; send them a corrected one with a "
        "new source_ref and their ids in routing.channels"
    )
    return (ChannelsWarning(message=said, problems=problems),)


def _closed(found: PostPreview, decisions: Sequence[ChannelDecision]) -> tuple[WindowWarning, ...]:
    """Only when no channel gets it before a window opens."""
    waiting = [
        channel for channel, decision in zip(found.channels, decisions, strict=True) if decision.outcome == "enqueued"
    ]
    if not waiting or not all("window" in channel.waits_for for channel in waiting):
        return ()
    until = min((channel.opens_at for channel in waiting if channel.opens_at is not None), default=None)
    opens = f"the first one opens at {until.isoformat()}" if until else "none opens"
    said = f"the posting windows of all its channels are closed ({len(waiting)}); {opens}"
    return (WindowWarning(message=said, until=until),)


def _filter_tags(found: PostPreview) -> set[str]:
    filters = (channel.facts.route_filter for channel in found.channels if "disabled" not in channel.kept_by)
    return {tag for route_filter in filters if route_filter for tag in chain(*route_filter.values())}
