"""The four promises. Each is done, and then judged by what the database and the simulator saw.

A sabotaged criterion is broken in the system, not in the judgement: the demo must notice by itself.
"""

from collections import Counter
from collections.abc import Awaitable, Callable
from uuid import UUID, uuid4

from msgspec import Struct, field

from autopost_cli.demo.scene import Row, Scene, Unmet

RETRY_AFTER = 1
STREAK = 3


class Finding(Struct, kw_only=True):
    """What was done and expected, what was seen, and each check with its verdict."""

    title: str
    done: list[str] = field(default_factory=list)
    expected: list[str] = field(default_factory=list)
    database: list[str] = field(default_factory=list)
    simulator: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        return not self.failed

    def check(self, promise: str, holds: bool) -> None:
        self.expected.append(promise)
        if not holds:
            self.failed.append(promise)


Criterion = Callable[[Scene, Finding, bool], Awaitable[None]]


async def travel(scene: Scene, finding: Finding, sabotage: bool) -> None:
    channels = await scene.sql("channels")
    answer = await scene.post("A post for everybody")
    finding.done.append(f"POST /v1/posts answered {answer['http_status']}, trace {answer['trace_id']}")
    rows = await scene.settled(answer)
    calls = await scene.calls("A post for everybody")

    sent = [row for row in rows if row["status"] == "sent"]
    span = (max(row["sent_at"] for row in sent) - min(row["created_at"] for row in rows)).total_seconds() if sent else 0
    finding.database.append(f"{len(sent)} of {len(channels)} deliveries sent, the last {span:.2f} s after the post")
    platforms = Counter(call["platform"] for call in calls if call["verdict"] == "accepted")
    finding.simulator.append(", ".join(f"{count} accepted by {name}" for name, count in sorted(platforms.items())))
    finding.check("forty channels on both platforms get it", len(sent) == len(channels) == 40 and len(platforms) == 2)
    finding.check("each exactly once", Counter(call["chat"] for call in calls) == Counter(r["target_id"] for r in rows))


async def config_driven(scene: Scene, finding: Finding, sabotage: bool) -> None:
    target = str(-1001500000000 - uuid4().int % 10**8)
    (added,) = await scene.sql("add_channel", target, not sabotage)
    finding.done.append(f"INSERT INTO channels: one row for chat {target}; nothing was restarted")
    answer = await scene.post("After the row was added", [added["channel_id"]])
    finding.done.append("posted again")
    try:
        rows = await scene.settled(answer)
    except Unmet as unmet:
        finding.check(str(unmet), False)
        rows = await scene.deliveries(answer)
    calls = await scene.calls("After the row was added")

    finding.database.append(f"deliveries to the new channel: {[row['status'] for row in rows] or 'none'}")
    finding.simulator.append(f"calls to chat {target}: {[call['verdict'] for call in calls] or 'none'}")
    finding.check("the new channel gets the next post", [row["status"] for row in rows] == ["sent"])
    finding.check("the chat shows it once", [call["chat"] for call in calls] == [target])


async def rate_limited(scene: Scene, finding: Finding, sabotage: bool) -> None:
    channel = (await scene.sql("channels"))[-1]
    text = "A post into a rate limit"
    strikes = {} if sabotage else {"times": 1}
    effect = {"status": 429, "retry_after": RETRY_AFTER}
    await scene.script("rate limit", effect, platform=channel["platform"], chat=int(channel["target_id"]), **strikes)
    finding.done.append(f"the simulator answers 429, retry_after {RETRY_AFTER}, to chat {channel['target_id']}")
    answer = await scene.post(text, [channel["channel_id"]])
    try:
        rows = await scene.settled(answer)
    except Unmet as unmet:
        finding.check(str(unmet), False)
        rows = await scene.deliveries(answer)
    await scene.unscript()
    events = await scene.events(message=answer["message_id"])
    calls = await scene.calls(text)

    actions = [event["action"] for event in events]
    retry = next((event for event in events if event["action"] == "retry_scheduled"), None)
    finding.database.append(f"events: {' → '.join(actions)}")
    if retry:
        finding.database.append(
            f"retry_scheduled: attempt {retry['attempt']}, code {retry['code']}, "
            f"next_retry_at {retry['next_retry_at']}, "
            f"raw answer in {retry['payload_ref']}"
        )
    finding.database.append(f"deliveries: {[(row['status'], row['attempt']) for row in rows]}")
    finding.simulator.append(f"answers: {[call['status'] for call in calls]}")
    gap = (calls[1]["arrived_ns"] - calls[0]["answered_ns"]) / 1e9 if len(calls) > 1 else 0.0
    finding.simulator.append(f"the second call came {gap:.2f} s after the 429")
    finding.check(
        "send_attempt, retry_scheduled with the error, send_attempt, sent",
        actions == ["enqueue", "send_attempt", "retry_scheduled", "send_attempt", "sent"]
        and retry is not None
        and (retry["result"], retry["code"]) == ("error", "rate_limited"),
    )
    finding.check(
        "next_retry_at is set and attempt rises", bool(retry and retry["next_retry_at"]) and rows[0]["attempt"] == 2
    )
    finding.check("the wait asked for is honoured, then it is sent", gap >= RETRY_AFTER and rows[0]["status"] == "sent")


async def deduplicated(scene: Scene, finding: Finding, sabotage: bool) -> None:
    pair = [channel["channel_id"] for channel in (await scene.sql("channels"))[:2]]
    text = "A post that comes twice"
    first = await scene.post(text, pair)
    await scene.settled(first)
    finding.done.append("posted to two channels, and waited until both had it")
    if sabotage:
        await scene.sql("forget_dedup", pair)
    second = await scene.post(text, pair)
    finding.done.append("posted the same content again")
    rows = await scene.settled(second)
    events = await scene.events(message=second["message_id"])
    calls = await scene.calls(text)

    suppressed = [event for event in events if event["action"] == "dedup_suppressed"]
    finding.database.append(f"{len(rows)} deliveries, {len(suppressed)} dedup_suppressed events")
    finding.simulator.append(f"accepted by chat: {dict(Counter(call['chat'] for call in calls))}")
    finding.check("the same content goes to two channels", len({call["chat"] for call in calls}) == 2)
    finding.check("the repetition is suppressed in both, with an event each", len(suppressed) == 2)
    finding.check("no chat shows it twice", max(Counter(call["chat"] for call in calls).values()) == 1)


async def isolated(scene: Scene, finding: Finding, sabotage: bool) -> None:
    bad, *good = (await scene.sql("channels"))[-3:]
    everyone = [bad, *good]
    for channel in everyone if sabotage else [bad]:
        effect = {"status": 403, "description": "Forbidden: bot was kicked from the channel chat"}
        await scene.script(
            f"kicked {channel['target_id']}", effect, platform=channel["platform"], chat=int(channel["target_id"])
        )
    finding.done.append(f"the bot is kicked from chat {bad['target_id']}; three posts go to it and to two others")
    outcomes = [await _one_bad_post(scene, finding, number, bad, everyone) for number in range(1, STREAK + 1)]
    await scene.unscript()
    events = [event["action"] for event in await scene.events(channel=bad["channel_id"])]
    (state,) = await scene.sql("channel", bad["channel_id"])

    finding.database.append(f"the bad channel: {', '.join(f'{k}={v}' for k, v in state.items())}")
    finding.simulator.append(
        "good chats accepted " + ", ".join(str(sent) for _, sent, _ in outcomes) + " of 2 each time"
    )
    finding.check(
        "its deliveries end as failed_permanent", all(status == "failed_permanent" for status, _, _ in outcomes)
    )
    finding.check("it is paused at the first failure", outcomes[0][2] and "channel_paused" in events)
    finding.check(f"it is disabled at the {STREAK}rd", not state["enabled"] and events.count("channel_disabled") >= 1)
    finding.check("the other channels go on", all(sent == 2 for _, sent, _ in outcomes))


async def _one_bad_post(
    scene: Scene, finding: Finding, number: int, bad: Row, everyone: list[Row]
) -> tuple[str, int, bool]:
    """How the bad channel's delivery ended, how many others were sent, and whether the channel was paused."""
    text = f"Post {number} past a banned channel"
    answer = await scene.post(text, [UUID(str(channel["channel_id"])) for channel in everyone])
    rows = {row["channel_id"]: row for row in await scene.settled(answer)}
    (state,) = await scene.sql("channel", bad["channel_id"])
    status = str(rows[bad["channel_id"]]["status"])
    sent = sum(row["status"] == "sent" for channel, row in rows.items() if channel != bad["channel_id"])
    finding.database.append(
        f"post {number}: bad {status}, others sent {sent}; streak {state['error_streak']}, paused {state['paused']}"
    )
    if number < STREAK:
        await scene.sql("end_pause", bad["channel_id"])
        finding.done.append("an operator ends the pause")
    return status, sent, bool(state["paused"])


CRITERIA: tuple[tuple[str, Criterion], ...] = (
    ("0. One post, forty channels", travel),
    ("1. A channel is a row", config_driven),
    ("2. A rate limit is waited out", rate_limited),
    ("3. The same content reaches a channel once", deduplicated),
    ("4. A bad channel stops nobody else", isolated),
)
