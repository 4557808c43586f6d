"""Refusals of one endpoint are told at most once a second, all of them, each by its own name."""

import json
from collections import Counter

from db.support.builders import Tenant
from db.support.senders import Sender, make_sender

HOLD = "UPDATE ingress_gates SET reported_at = clock_timestamp() + interval '1 hour'"
"""The second after the last report lasts until it is said to be over."""
SECOND = "UPDATE ingress_gates SET reported_at = clock_timestamp() - interval '1.1 seconds'"


async def refuse(sender: Sender, action: str = "ingress_rate_limited", counter: str = "rate_limited") -> None:
    await sender.tenant.db.execute(
        "SELECT refuse_ingress($1, $2, 'push', $3::text::event_action, $4, '{\"code\": \"x\"}', 'trace')",
        *(sender.tenant.workspace, sender.endpoint, action, counter),
    )


async def told(tenant: Tenant) -> list[tuple[str, int]]:
    return [(event["what"], json.loads(event["meta"])["count"]) for event in await tenant.events()]


async def test_a_refusal_leaves_an_event_and_a_finished_run(tenant):
    sender = await make_sender(tenant)

    await refuse(sender)

    [event] = await tenant.events()
    meta = json.loads(event["meta"])
    assert (event["what"], event["ended"], event["attempt"]) == ("ingress_rate_limited", "error", 0)
    assert (meta["endpoint_id"], meta["trace_id"], meta["count"]) == (str(sender.endpoint), "trace", 1)
    assert await sender.runs() == [{"rate_limited": 1}]


async def test_refusals_within_a_second_are_told_together(tenant):
    sender = await make_sender(tenant)
    await refuse(sender)
    await tenant.db.execute(HOLD)
    for _ in range(4):
        await refuse(sender)

    await tenant.db.execute(SECOND)
    await refuse(sender)

    assert await told(tenant) == [("ingress_rate_limited", 1), ("ingress_rate_limited", 5)]
    assert sum(Counter(run)["rate_limited"] for run in await sender.runs()) == 6


async def test_refusals_of_two_kinds_are_not_mixed_up(tenant):
    sender = await make_sender(tenant)
    await refuse(sender)
    for _ in range(3):
        await refuse(sender, "ingress_dedup_dropped", "dedup_dropped")
    await refuse(sender)

    await tenant.db.execute(SECOND)
    await refuse(sender)
    await refuse(sender, "ingress_dedup_dropped", "dedup_dropped")

    counts: Counter = Counter()
    for action, count in await told(tenant):
        counts[action] += count
    assert counts["ingress_rate_limited"] == 3
    assert counts["ingress_dedup_dropped"] in (3, 4)  # the last may wait for its second


async def test_two_endpoints_are_told_apart(tenant):
    for sender in [await make_sender(tenant) for _ in range(2)]:
        await refuse(sender)

    assert await told(tenant) == [("ingress_rate_limited", 1)] * 2
