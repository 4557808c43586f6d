"""What operators' steps may do: the same as ``rules``, for what is done by hand."""

from db.model.done import Done, Explained, twin_of
from db.model.queue_model import FOREVER, GIVEN_UP, demand


def operate(done: Done) -> Explained:
    """pause, resume, disable, enable: the channel, and on opening what its catch-up policy drops."""
    channel = done.args["channel"]
    was = done.view.channel(channel)
    is_ = done.channels.get(channel, (was, was))[1]
    closed = not was.enabled or (was.paused_until or 0) > done.began  # a pause may end while the step runs
    ran_out = done.kind == "enable" and was.streak > 0 and was.paused_until is not None  # and no claim has ended it yet
    surely = not was.enabled or (was.paused_until or 0) > done.ended
    match done.kind:
        case "pause":
            until = is_.paused_until or 0
            demand(until >= max(done.began + done.args["for_us"], was.paused_until or 0), "pauses", was, is_)
            wanted = was._replace(paused_until=until)
        case "disable":
            wanted = was._replace(enabled=False)
        case "resume":
            wanted = was._replace(paused_until=None if (was.paused_until or 0) > done.ended else is_.paused_until)
        case _:
            wanted = was._replace(enabled=True, streak=0, paused_until=None if surely else is_.paused_until)
    demand(is_ == wanted, "operators", done.kind, was, is_)
    explained = set()
    for delivery, (before, after) in done.changes.items():
        if before and (before.status, after.status) in {("queued", "failed_permanent"), ("retry", "failed_permanent")}:
            fine = done.kind in ("resume", "enable") and (closed or ran_out) and done.terms[channel].catch_up
            demand(fine and before.channel == channel, "no lost delivery", "dropped", before)
            explained.add(delivery)
    return explained


def requeue(done: Done) -> Explained:
    explained = set()
    for delivery in done.args["ids"]:
        row = done.view.row(delivery)
        back = delivery in done.changes
        if done.kind == "requeue":
            demand(
                back == ((done.answer or {}).get(delivery) == "requeued"), "verdicts are true", delivery, done.answer
            )
        else:
            given_up = bool(row and row.status in GIVEN_UP)
            demand(back == given_up, "a raw update is carried out", row)
        if not back:
            continue
        before, after = done.changes[delivery]
        assert before
        demand(before.status in GIVEN_UP and after.status == "retry", "legal transitions only", before, after)
        twin = twin_of(done.view, before.message, before.channel, done.ended, done.terms[before.channel].ttl, delivery)
        if done.kind == "requeue":
            demand(twin is not True, "dedup window and in-flight guard", "requeued beside a twin", before)
        done.view.forced.add((before.message, before.channel))
        explained.add(delivery)
    return explained


def release(done: Done) -> Explained:
    explained = set()
    for delivery, (before, after) in done.changes.items():
        if before and before.status == "sending" and after.status == "retry":
            forced = done.args.get("force", False) or done.kind == "raw_release"
            demand(forced or (before.lease or 0) < done.ended, "a running lease is not taken away", before)
            demand(after.token is None, "fences", after)
            explained.add(delivery)
    if done.kind == "release":
        demand(set(done.answer or []) == explained, "verdicts are true", done.answer, explained)
    return explained


def resolve(done: Done) -> Explained:
    [delivery] = done.args["ids"]
    before = done.view.row(delivery)
    held = bool(before and before.status == "retry" and before.hold and before.next_retry_at == FOREVER)
    verdict = done.answer["verdict"]
    demand((verdict in ("sent", "continues", "resent")) == held, "verdicts are true", before, done.answer)
    if not held:
        return set()
    after = done.changes[delivery][1]
    demand(after.status == ("sent" if verdict == "sent" else "retry"), "endings", done.answer, after)
    return {delivery}
