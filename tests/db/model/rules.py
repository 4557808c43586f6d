"""What each step may do: every change of a row must be explained by the step that made it, and none may be missing."""

from collections.abc import Callable
from typing import Any

from db.model.done import Done, Explained, fences, twin_of
from db.model.operator_rules import operate, release, requeue, resolve
from db.model.queue_model import FOREVER, SECOND, TOLERANCE, Channel, Row, Terms, check_spacing, demand, retry_delay

PAUSE = 3600 * SECOND
STREAK = 3


def enqueue(done: Done) -> Explained:
    message = done.answer["message_id"]
    born = {after.channel: after for before, after in done.changes.values() if before is None}
    for channel in done.args["channels"]:
        open_ = {view.channel(channel).enabled for view in done.seen}
        twins = {twin_of(view, message, channel, done.ended, done.terms[channel].ttl) for view in done.seen}
        if channel in born:
            demand(True in open_, "a disabled channel gets nothing new", channel)
            demand(twins != {True}, "dedup window and in-flight guard", "a twin was let in", born[channel])
        elif open_ == {True}:
            demand(twins != {False}, "no lost delivery", "nothing was enqueued for", channel, done.answer)
    demand(done.answer["enqueued"] == len(born), "no lost delivery", done.answer, born)
    for row in born.values():
        demand(row.status == "queued" and row.message == message, "legal transitions only", row)
    return {row.delivery for row in born.values()}


def claim(done: Done) -> Explained:
    claims = done.answer or []
    demand(not (claims and done.others_claim), "one claim in a workspace", claims)
    demand(len(claims) <= done.args["limit"], "a claim keeps its limit", claims)
    for delivery, token, attempt, _slot in claims:
        demand(delivery in done.changes, "a claim is written before it is told", delivery)
        before, after = done.changes[delivery]
        channel = done.view.channel(after.channel)
        demand(before is not None and before.status in ("queued", "retry"), "legal transitions only", before)
        assert before
        demand(after.status == "sending" and after.attempt == attempt, "a claim is written before it is told", after)
        demand(after.token == token, "fences", "the token told is not the one written", after)
        demand(before.due <= done.ended, "nothing goes out before it is due", before, done.ended)
        demand(channel.enabled, "nothing goes out of a disabled channel", after)
        demand((channel.paused_until or 0) <= done.ended, "nothing goes out of a paused channel", after)
        demand((after.lease or 0) > done.ended, "a lease is ahead", after)
        _check_gates(done, after)
    _check_ledger(done, {done.changes[claim[0]][1].channel for claim in claims})
    return {claim[0] for claim in claims} | _caught_up(done, {done.changes[claim[0]][1].channel for claim in claims})


def _caught_up(done: Done, served: set[str]) -> Explained:
    """A pause that ran out is followed by the catch-up policy before anything goes out of the channel."""
    over = {
        channel
        for channel, terms in done.terms.items()
        if terms.catch_up and (was := done.view.channel(channel)).enabled and was.paused_until is not None
    }
    for channel in over:
        was, is_ = done.channels.get(channel, (done.view.channel(channel),) * 2)
        ended = is_.paused_until is None
        demand(not ended or (was.paused_until or 0) <= done.ended, "a pause lasts", was, is_)
        demand(ended or channel not in served, "no claim is before the catch-up", was, is_)
    dropped = {
        delivery: before
        for delivery, (before, after) in done.changes.items()
        if before and before.status in ("queued", "retry") and after.status == "failed_permanent"
    }
    for before in dropped.values():
        demand(before.channel in over, "no lost delivery", "dropped", before)
    return set(dropped)


def _check_gates(done: Done, after: Row) -> None:
    terms, slot = done.terms[after.channel], after.slot or 0
    demand(slot >= (done.view.channel(after.channel).gate or 0), "slots honour the channel's gate", after)
    demand(slot >= (done.view.gate(terms.group) or 0), "slots honour the group's gate", after)
    demand(slot <= done.ended, "no look-ahead", after)
    demand(slot >= done.began - TOLERANCE, "no burst after idling", after, done.began)
    done.view.slots.append((after.channel, slot))


def _check_ledger(done: Done, channels: set[str]) -> None:
    slots = done.view.all_slots()
    for channel in channels:
        terms = done.terms[channel]
        check_spacing([s for c, s in slots if c == channel], terms.step, "channel")
        of_group = [s for c, s in slots if done.terms[c].group == terms.group]
        check_spacing(of_group, terms.group_step, "group")


def commit(done: Done) -> Explained:
    outcomes = done.args["outcomes"]
    demand(len(done.answer or []) == len(outcomes), "one verdict per outcome", done.answer)
    ended: list[tuple[dict[str, Any], Row, Row]] = []
    used = set()
    committed = {delivery for delivery, verdict, *_ in done.answer or [] if verdict == "committed"}
    for outcome, (delivery, verdict, status, _at) in zip(outcomes, done.answer or [], strict=True):
        row = done.view.row(delivery)
        key = (delivery, outcome["claim_token"])
        if verdict == "left":
            demand(delivery in committed or delivery not in done.changes, "what is left is as it was", delivery)
            continue
        if not fences(done, *key, verdict == "committed", key in used):
            continue
        assert row
        used.add(key)
        demand(delivery in done.changes, "a verdict is written before it is told", delivery)
        after = done.changes[delivery][1]
        demand(after == _ending(outcome, row, after, done.terms[row.channel]), "endings", outcome, row, after)
        demand(status == after.status, "endings", status, after)
        ended.append((outcome, row, after))
    _check_penalties(done, ended)
    return {row.delivery for _, row, _ in ended}


def _ending(outcome: dict[str, Any], row: Row, after: Row, terms: Terms) -> Row:
    now, retry_at = after.updated_at, None
    hold = None
    match outcome:
        case {"result": "sent"}:
            status = "sent"
        case {"result": "released"}:
            status, retry_at = "retry", now
        case {"category": "PERMANENT"}:
            status = "failed_permanent"
        case {"ambiguous": True} if terms.on_ambiguous == "hold":
            status, retry_at, hold = "retry", FOREVER, "ambiguous"
        case _ if row.attempt >= row.max_attempts:
            status = "dead"
        case _:
            status, retry_at = "retry", now + retry_delay(row.attempt, outcome.get("retry_after_ms"))
    return row._replace(
        status=status,
        token=None,
        lease=None,
        hold=hold,
        sent_at=now if status == "sent" else None,
        next_retry_at=retry_at,
        provider_message_id=outcome.get("provider_message_id") or row.provider_message_id,
        updated_at=now,
    )


def _check_penalties(done: Done, ended: list[tuple[dict[str, Any], Row, Row]]) -> None:
    """A commit that waited may have found nothing to do in a channel before that; what it writes fits what it finds."""
    for channel in {row.channel for _, row, _ in ended}:
        own = [(o, after) for o, row, after in ended if row.channel == channel]
        found, written = [view.channel(channel) for view in done.seen], done.channels.get(channel)
        idle = any(_penalized(was, own) == was for was in found)
        demand(written[1] == _penalized(found[-1], own) if written else idle, "penalties", found, written, own)
    for group in {done.terms[row.channel].group for _, row, _ in ended}:
        own = [(o, row, after) for o, row, after in ended if done.terms[row.channel].group == group]
        had = done.view.gate(group)
        has = done.gates.get(group, (had, had))[1]
        # Nobody is told of a claim before it is committed, but here one may be; what was born with it has no group yet.
        fits = [
            max(had or 0, 0, *(_cooled(o, after) for o, row, after in own if view.row(row.delivery))) or None
            for view in done.seen
        ]
        demand(has in fits, "cooldowns", fits, has)


def _cooled(outcome: dict[str, Any], after: Row) -> int:
    """Until when the group rests, 0 for not at all."""
    wait = outcome.get("retry_after_ms", 60_000 if outcome.get("category") == "PERMANENT" else None)
    return after.updated_at + wait * 1000 if outcome.get("scope") == "platform" and wait is not None else 0


def _penalized(was: Channel, own: list[tuple[dict[str, Any], Row]]) -> Channel:
    now = own[0][1].updated_at
    failures = sum(o.get("category") == "PERMANENT" and o.get("scope") == "channel" for o, _ in own)
    arrived = any(o["result"] == "sent" for o, _ in own)
    streak = (0 if arrived else was.streak) + failures
    waits = [o.get("retry_after_ms") for o, _ in own if o.get("scope") == "channel" and o["category"] == "TRANSIENT"]
    wait = max((w for w in waits if w is not None), default=None)
    return was._replace(
        streak=streak,
        paused_until=max(was.paused_until or 0, now + PAUSE) if failures else was.paused_until,
        enabled=was.enabled and not (failures and streak >= STREAK),
        gate=was.gate if wait is None else max(was.gate or 0, now + wait * 1000),
    )


def recover(done: Done) -> Explained:
    ahead = done.args["ahead_us"]
    explained = set()
    for delivery, (before, after) in done.changes.items():
        if not before or before.status != "sending" or after.status == "sending":
            continue
        terms = done.terms[before.channel]
        demand((before.lease or 0) < done.ended + ahead, "a running lease is not taken away", before, done.ended)
        held, dead = terms.on_ambiguous == "hold", before.attempt >= before.max_attempts
        retry_at = FOREVER if held else None if dead else after.updated_at + retry_delay(before.attempt, None)
        wanted = ("retry" if held or not dead else "dead", retry_at, None)
        demand((after.status, after.next_retry_at, after.token) == wanted, "endings", "recovered", before, after)
        explained.add(delivery)
    demand(done.answer == len(explained), "recovery tells what it took", done.answer, explained)
    if not done.others_open and len(done.seen) == 1:
        left = [r for r in done.view.all_rows() if r.status == "sending" and (r.lease or 0) < done.began + ahead]
        demand({r.delivery for r in left} <= explained, "no lost delivery", "an expired lease was left", left)
    return explained


def renew(done: Done) -> Explained:
    explained = set()
    for delivery, token in zip(done.args["ids"], done.args["tokens"], strict=True):
        if fences(done, delivery, token, delivery in (done.answer or [])) and delivery in done.changes:
            before, after = done.changes[delivery]
            assert before
            wanted = before._replace(lease=after.lease, updated_at=after.updated_at)
            demand(after == wanted and (after.lease or 0) > done.ended, "fences", "a lease was renewed", after)
            explained.add(delivery)
    return explained


def progress(done: Done) -> Explained:
    """A part was acknowledged, and the next one takes its slot: of a claim that is still ours, both or neither."""
    [delivery], token = done.args["ids"], done.args["token"]
    ours, given = done.answer or (False, None)
    demand(ours is (given is not None), "fences", "a slot for whom it is not", done.answer)
    row = done.view.row(delivery)
    if given is not None and row is not None:
        slot, taken, asked = given
        terms = done.terms[row.channel]
        demand(slot >= (done.view.channel(row.channel).gate or 0), "slots honour the channel's gate", row)
        demand(slot >= (done.view.gate(terms.group) or 0), "slots honour the group's gate", row)
        demand(slot >= done.began, "a later call has no slot in the past", row)
        if taken:
            demand(slot <= max(asked, done.view.gate(terms.group) or 0), "a group waits for no channel", row)
            done.view.slots.append((row.channel, slot))
            _check_ledger(done, {row.channel})
    if not fences(done, delivery, token, ours) or delivery not in done.changes:
        return set()
    before, after = done.changes[delivery]
    assert before
    demand(after == before._replace(parts=before.parts + 1, updated_at=after.updated_at), "progress", before, after)
    return {delivery}


RULES: dict[str, Callable[[Done], Explained]] = {
    "enqueue": enqueue,
    "claim": claim,
    "commit": commit,
    "recover": recover,
    "renew": renew,
    "progress": progress,
    **dict.fromkeys(("pause", "resume", "disable", "enable"), operate),
    **dict.fromkeys(("requeue", "raw_requeue"), requeue),
    **dict.fromkeys(("release", "raw_release"), release),
    "resolve": resolve,
    "age": lambda _: set(),
}


def check_step(done: Done) -> None:
    explained = RULES[done.kind](done)
    for delivery, (before, after) in done.changes.items():
        demand(delivery in explained, "every change is explained", done.kind, before, after)
    for channel, (was, is_) in done.channels.items():
        demand((is_.gate or 0) >= (was.gate or 0), "gates never go back", was, is_)
        known = done.kind in ("claim", "commit", "progress") or done.args.get("channel") == channel
        demand(known, "every change is explained", done.kind, was, is_)
    for group, (had, has) in done.gates.items():
        demand((has or 0) >= (had or 0), "gates never go back", group, had, has)
        demand(done.kind in ("claim", "commit", "progress"), "every change is explained", done.kind, group)
