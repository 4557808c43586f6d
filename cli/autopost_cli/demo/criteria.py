"""The guarantees. Each is exercised and then checked in the database and in the log of the simulator.

Sabotage breaks the system, not the check: the demo must detect it.
"""

from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple
from uuid import UUID, uuid4

from autopost_cli.demo.conversation import conversed
from autopost_cli.demo.finding import Finding
from autopost_cli.demo.publication import published
from autopost_cli.demo.system import ConditionNotMet, DemoSystem, Row

RETRY_AFTER = 1
STREAK = 3


class RejectedCall(NamedTuple):
    status: int
    words: str
    effect: dict[str, Any]


REFUSALS = {
    "telegram": RejectedCall(
        403,
        "has kicked the bot (403)",
        {"status": 403, "description": "Forbidden: bot was kicked from the channel chat"},
    ),
    "max": RejectedCall(404, "is gone (404)", {"catalogue": "max.chat_not_found"}),
}


Criterion = Callable[[DemoSystem, Finding, bool], Awaitable[None]]


async def travel(system: DemoSystem, finding: Finding, sabotage: bool) -> None:
    channels = await system.sql("channels")
    answer = await system.post("A post for everybody")
    finding.done.append(f"POST /v1/posts answered {answer['http_status']}, trace {answer['trace_id']}")
    rows = await system.settled(answer)
    calls = await system.calls("A post for everybody")

    sent = [row for row in rows if row["status"] == "sent"]
    span = (max(row["sent_at"] for row in sent) - min(row["created_at"] for row in rows)).total_seconds() if sent else 0
    finding.database.append(f"{len(sent)} of {len(channels)} deliveries sent, the last {span:.2f} s after the post")
    platforms = Counter(call["platform"] for call in calls if call["verdict"] == "accepted")
    finding.simulator.append(", ".join(f"{count} accepted by {name}" for name, count in sorted(platforms.items())))
    finding.check("forty channels on both platforms get it", len(sent) == len(channels) == 40 and len(platforms) == 2)
    finding.check("each exactly once", Counter(call["chat"] for call in calls) == Counter(r["target_id"] for r in rows))


async def config_driven(system: DemoSystem, finding: Finding, sabotage: bool) -> None:
    target = str(-1001500000000 - uuid4().int % 10**8)
    (added,) = await system.sql("add_channel", target, not sabotage)
    finding.done.append(f"INSERT INTO channels: one row for chat {target}; nothing was restarted")
    answer = await system.post("After the row was added", [added["channel_id"]])
    finding.done.append("posted again")
    try:
        rows = await system.settled(answer)
    except ConditionNotMet as unmet:
        finding.check(str(unmet), False)
        rows = await system.deliveries(answer)
    calls = await system.calls("After the row was added")

    finding.database.append(f"deliveries to the new channel: {[row['status'] for row in rows] or 'none'}")
    finding.simulator.append(f"calls to chat {target}: {[call['verdict'] for call in calls] or 'none'}")
    finding.check("the new channel gets the next post", [row["status"] for row in rows] == ["sent"])
    finding.check("the chat shows it once", [call["chat"] for call in calls] == [target])


async def rate_limited(system: DemoSystem, finding: Finding, sabotage: bool) -> None:
    for channel in await _one_per_platform(system):
        await _into_a_rate_limit(system, finding, channel, sabotage)


async def _into_a_rate_limit(system: DemoSystem, finding: Finding, channel: Row, sabotage: bool) -> None:
    platform, text = channel["platform"], f"A post into a rate limit of {channel['platform']}"
    strikes = {} if sabotage else {"times": 1}
    effect = {"status": 429, "retry_after": RETRY_AFTER}
    await system.script(
        f"rate limit of {platform}", effect, platform=platform, chat=int(channel["target_id"]), **strikes
    )
    finding.done.append(
        f"the simulator answers 429, retry_after {RETRY_AFTER}, to {platform} chat {channel['target_id']}"
    )
    answer = await system.post(text, [channel["channel_id"]])
    try:
        rows = await system.settled(answer)
    except ConditionNotMet as unmet:
        finding.check(f"{platform}: {unmet}", False)
        rows = await system.deliveries(answer)
    await system.unscript()
    events = await system.events(message=answer["message_id"])
    calls = await system.calls(text)

    actions = [event["action"] for event in events]
    retry = next((event for event in events if event["action"] == "retry_scheduled"), None)
    finding.database.append(f"{platform}: events: {' → '.join(actions)}")
    if retry:
        finding.database.append(
            f"{platform}: retry_scheduled: attempt {retry['attempt']}, code {retry['code']}, "
            f"next_retry_at {retry['next_retry_at']}, "
            f"raw answer in {retry['payload_ref']}"
        )
    finding.database.append(f"{platform}: deliveries: {[(row['status'], row['attempt']) for row in rows]}")
    finding.simulator.append(f"{platform}: answers: {[call['status'] for call in calls]}")
    gap = (calls[1]["arrived_ns"] - calls[0]["answered_ns"]) / 1e9 if len(calls) > 1 else 0.0
    finding.simulator.append(f"{platform}: the second call came {gap:.2f} s after the 429")
    finding.check(
        f"{platform}: send_attempt, retry_scheduled with the error, send_attempt, sent",
        actions == ["enqueue", "send_attempt", "retry_scheduled", "send_attempt", "sent"]
        and retry is not None
        and (retry["result"], retry["code"]) == ("error", "rate_limited"),
    )
    finding.check(
        f"{platform}: next_retry_at is set and attempt rises",
        bool(retry and retry["next_retry_at"]) and rows[0]["attempt"] == 2,
    )
    finding.check(
        f"{platform}: the wait asked for is honoured, then it is sent",
        gap >= RETRY_AFTER and rows[0]["status"] == "sent",
    )


async def _one_per_platform(system: DemoSystem) -> list[Row]:
    """The last channel of each."""
    last = {channel["platform"]: channel for channel in await system.sql("channels")}
    return [last[platform] for platform in sorted(last)]


async def deduplicated(system: DemoSystem, finding: Finding, sabotage: bool) -> None:
    pair = [channel["channel_id"] for channel in (await system.sql("channels"))[:2]]
    text = "A post that comes twice"
    first = await system.post(text, pair)
    await system.settled(first)
    finding.done.append("posted to two channels, and waited until both had it")
    if sabotage:
        await system.sql("forget_dedup", pair)
    second = await system.post(text, pair)
    finding.done.append("posted the same content again")
    rows = await system.settled(second)
    events = await system.events(message=second["message_id"])
    calls = await system.calls(text)

    suppressed = [event for event in events if event["action"] == "dedup_suppressed"]
    finding.database.append(f"{len(rows)} deliveries, {len(suppressed)} dedup_suppressed events")
    finding.simulator.append(f"accepted by chat: {dict(Counter(call['chat'] for call in calls))}")
    finding.check("the same content goes to two channels", len({call["chat"] for call in calls}) == 2)
    finding.check("the repetition is suppressed in both, with an event each", len(suppressed) == 2)
    finding.check("no chat shows it twice", max(Counter(call["chat"] for call in calls).values()) == 1)


async def isolated(system: DemoSystem, finding: Finding, sabotage: bool) -> None:
    bad = await _one_per_platform(system)
    good = [one for one in await system.sql("channels") if one not in bad][:: len(bad)][: len(bad)]
    for channel in [*bad, *good] if sabotage else bad:
        refusal = REFUSALS[channel["platform"]]
        match = {"platform": channel["platform"], "chat": int(channel["target_id"])}
        await system.script(f"refused by {channel['target_id']}", refusal.effect, **match)
    for channel in bad:
        finding.done.append(f"{channel['platform']} chat {channel['target_id']} {REFUSALS[channel['platform']].words}")
    finding.done.append(f"{STREAK} posts go to them and to {len(good)} others")
    rounds = [await _one_bad_post(system, finding, number, bad, good) for number in range(1, STREAK + 1)]
    await system.unscript()

    for channel in bad:
        await _judge_bad(system, finding, channel, [states[channel["channel_id"]] for states, _ in rounds])
    finding.simulator.append(
        "good chats accepted " + ", ".join(str(sent) for _, sent in rounds) + f" of {len(good)} each time"
    )
    finding.check("the other channels go on", all(sent == len(good) for _, sent in rounds))


async def _judge_bad(system: DemoSystem, finding: Finding, bad: Row, rounds: list[tuple[str, bool]]) -> None:
    status = REFUSALS[bad["platform"]].status
    events = [event["action"] for event in await system.events(channel=bad["channel_id"])]
    (state,) = await system.sql("channel", bad["channel_id"])
    finding.database.append(f"after {status}: {', '.join(f'{k}={v}' for k, v in state.items())}")
    finding.check(
        f"{status}: its deliveries end as failed_permanent", all(one == "failed_permanent" for one, _ in rounds)
    )
    finding.check(f"{status}: it is paused at the first failure", rounds[0][1] and "channel_paused" in events)
    finding.check(
        f"{status}: it is disabled at the {STREAK}rd", not state["enabled"] and events.count("channel_disabled") >= 1
    )


async def _one_bad_post(
    system: DemoSystem, finding: Finding, number: int, bad: list[Row], good: list[Row]
) -> tuple[dict[UUID, tuple[str, bool]], int]:
    """By bad channel: the status of its delivery and whether it is paused; and how many others were sent."""
    text = f"Post {number} past two bad channels"
    answer = await system.post(text, [UUID(str(channel["channel_id"])) for channel in [*bad, *good]])
    rows = {row["channel_id"]: row for row in await system.settled(answer)}
    sent = sum(rows[channel["channel_id"]]["status"] == "sent" for channel in good)
    states = {}
    for channel in bad:
        (state,) = await system.sql("channel", channel["channel_id"])
        status = str(rows[channel["channel_id"]]["status"])
        states[channel["channel_id"]] = (status, bool(state["paused"]))
        finding.database.append(
            f"post {number}: {channel['platform']} {status}, streak {state['error_streak']}, paused {state['paused']}"
        )
        if number < STREAK:
            await system.sql("end_pause", channel["channel_id"])
    finding.database.append(f"post {number}: others sent {sent}")
    if number < STREAK:
        finding.done.append("an operator ends the pauses")
    return states, sent


CRITERIA: tuple[tuple[str, Criterion], ...] = (
    ("0. One post, forty channels", travel),
    ("1. A channel is a row", config_driven),
    ("2. A rate limit is waited out", rate_limited),
    ("3. The same content reaches a channel once", deduplicated),
    ("4. A bad channel stops nobody else", isolated),
    ("5. A customer of the bot gets one answer to each message", conversed),
    ("6. What was approved goes out at its time, once, without NATS", published),
)
