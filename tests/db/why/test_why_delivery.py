"""Each gate: named when it holds, with since when, until when, and what would open it."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from db.support.builders import Tenant, permanent, sent, transient
from db.support.operators import Operator, held

HOUR = timedelta(hours=1)


class Asked(dict[str, Any]):
    """The answer for one delivery, its cause decoded."""


async def why(tenant: Tenant, delivery: UUID, now: datetime | None = None) -> Asked:
    [row] = await tenant.db.fetch("SELECT * FROM why_delivery($1, $2, $3)", tenant.workspace, [delivery], now)
    return Asked({**row, "cause": json.loads(row["cause"] or "{}")})


async def one(tenant: Tenant, **columns: Any) -> tuple[UUID, UUID]:
    """A channel, and a delivery that waits in it."""
    channel = await tenant.channel(**columns)
    [delivery] = await tenant.backlog(channel, 1)
    return channel, delivery


def near(moment: datetime, expected: datetime) -> bool:
    return abs(moment - expected) < timedelta(seconds=30)


def soon() -> datetime:
    return datetime.now(UTC) + HOUR


async def test_what_is_only_in_line_is_told_its_place(tenant: Tenant) -> None:
    channel = await tenant.channel()
    first, second, third = await tenant.backlog(channel, 3)

    told = [await why(tenant, delivery) for delivery in (first, second, third)]

    assert [(one["gate"], one["cause"]["behind"], one["released_by"]) for one in told] == [
        ("queued_behind", place, "dispatcher") for place in range(3)
    ]


async def test_what_is_being_sent_is_no_longer_in_line(tenant: Tenant) -> None:
    channel = await tenant.channel()
    _, second, third = await tenant.backlog(channel, 3)
    await tenant.claim(1)

    assert [(await why(tenant, delivery))["cause"]["behind"] for delivery in (second, third)] == [0, 1]


async def test_what_comes_due_is_told_the_place_that_the_next_claim_gives_it(tenant: Tenant) -> None:
    """It is older than the other, and still asleep when the question is asked."""
    channel = await tenant.channel()
    older, younger = await tenant.backlog(channel, 2)
    await tenant.set_delivery(older, "scheduled_for = clock_timestamp() + interval '1 hour'")
    later = soon() + HOUR

    told = {delivery: (await why(tenant, delivery, later))["cause"]["behind"] for delivery in (older, younger)}

    assert told == {older: 0, younger: 1}
    assert [claim["delivery_id"] for claim in await tenant.claim(now=later)] == [older, younger]
    tenant.now = later


@pytest.mark.parametrize("status", ["paused", "disabled"])
async def test_a_workspace_that_rests_holds_all_that_waits_and_no_send_that_has_begun(
    tenant: Tenant, operator: Operator, status: str
) -> None:
    channel = await tenant.channel(max_parallel=1)
    flying, waiting = await tenant.backlog(channel, 2)
    await tenant.claim()
    await tenant.db.execute("UPDATE workspaces SET status = $2 WHERE workspace_id = $1", tenant.workspace, status)

    told, begun = await why(tenant, waiting), await why(tenant, flying)
    over = await why(tenant, flying, soon())

    assert (told["gate"], told["until"], told["later"]) == (f"workspace_{status}", None, ["max_parallel"])
    assert near(told["since"], datetime.now(UTC))
    assert (begun["gate"], over["gate"], over["later"]) == ("lease", f"workspace_{status}", ["lease"])
    assert told["command"] == f"autopost workspace resume --workspace {tenant.workspace} --reason '…'"
    await operator.turn_workspace("active")
    assert (await why(tenant, waiting))["gate"] == "max_parallel"


async def test_a_closed_channel_says_who_closed_it_and_what_opens_it(tenant: Tenant, operator: Operator) -> None:
    channel, delivery = await one(tenant)
    await operator.pause(channel)
    paused = await why(tenant, delivery)
    await operator.disable(channel)
    disabled = await why(tenant, delivery)

    assert (paused["gate"], paused["cause"]) == ("channel_paused", {"operator": "ann", "reason": "because"})
    assert near(paused["until"], soon())
    assert near(paused["since"], datetime.now(UTC))
    assert paused["command"] == f"autopost channel resume {channel} --workspace {tenant.workspace} --reason '…'"
    assert (disabled["gate"], disabled["until"], disabled["later"]) == ("channel_disabled", None, ["channel_paused"])
    assert disabled["command"] == f"autopost channel enable {channel} --workspace {tenant.workspace} --reason '…'"


async def test_a_channel_closed_by_its_failures_names_their_code(tenant: Tenant) -> None:
    channel = await tenant.channel(max_parallel=1)
    await tenant.backlog(channel, 1)
    await tenant.commit(permanent(await tenant.claim_one(), "channel", code="chat not found"))
    [waiting] = await tenant.backlog(channel, 1)

    assert (await why(tenant, waiting))["cause"] == {"code": "chat not found", "error_streak": 1}


async def test_a_pause_past_the_functions_has_no_since(tenant: Tenant, operator: Operator) -> None:
    """The last word in the log is that it was opened: an older pause is not this one."""
    channel, delivery = await one(tenant)
    await operator.pause(channel)
    await operator.resume(channel)
    await tenant.set_channel(channel, "paused_until = 'infinity'")

    told = await why(tenant, delivery)

    assert (told["gate"], told["since"], told["until"], told["cause"]) == ("channel_paused", None, None, {})


async def test_a_schedule_is_told_before_a_window_and_both_before_a_retry(tenant: Tenant) -> None:
    _, delivery = await one(tenant, window_mode="windowed", posting_window={})
    at = soon()
    await tenant.set_delivery(delivery, "scheduled_for = $3", at)

    told = await why(tenant, delivery)

    assert (told["gate"], told["until"], told["released_by"]) == ("schedule", at, "time")
    assert told["later"] == ["window"]
    later = await why(tenant, delivery, at)
    assert (later["gate"], later["until"], later["released_by"]) == ("window", None, "settings")


async def test_a_window_says_when_it_opens(tenant: Tenant) -> None:
    noon = datetime(2031, 3, 3, 12, tzinfo=UTC)
    window = {"mon": [["18:00", "19:00"]]}
    _, delivery = await one(tenant, window_mode="windowed", posting_window=window, timezone="UTC")

    told = await why(tenant, delivery, noon)

    assert (told["gate"], told["until"]) == ("window", noon.replace(hour=18))


async def test_a_backoff_says_which_failure_it_follows(tenant: Tenant) -> None:
    _, delivery = await one(tenant)
    await tenant.commit(transient(await tenant.claim_one(), code="http_502", message="bad gateway"))

    told = await why(tenant, delivery)

    row = await tenant.delivery(delivery)
    assert (told["gate"], told["since"], told["until"]) == ("retry_backoff", row["updated_at"], row["next_retry_at"])
    assert told["cause"] == {"code": "http_502", "message": "bad gateway"}


async def test_a_hold_waits_for_a_human(tenant: Tenant, operator: Operator) -> None:
    delivery = (await held(tenant))["delivery_id"]

    told = await why(tenant, delivery)

    assert (told["gate"], told["until"], told["released_by"]) == ("hold", None, "operator")
    assert told["cause"]["hold_reason"] == "ambiguous"
    signed = f"--workspace {tenant.workspace} --reason '…'"
    assert told["command"] == f"autopost queue resolve {delivery} resend {signed}"
    await operator.resolve(delivery, "resend")
    assert (await why(tenant, delivery))["gate"] == "queued_behind"


async def test_a_hold_that_nobody_explained_is_ended_by_hand(tenant: Tenant) -> None:
    _, delivery = await one(tenant)
    await tenant.commit(transient(await tenant.claim_one()))
    await tenant.set_delivery(delivery, "next_retry_at = 'infinity'")

    told = await why(tenant, delivery)
    await tenant.db.execute(told["command"])

    assert (told["gate"], (await why(tenant, delivery))["gate"]) == ("hold", "queued_behind")


@pytest.mark.parametrize("rate", [None, 5])
async def test_a_wait_that_a_provider_asked_for_is_a_cooldown_however_short(tenant: Tenant, rate: float | None) -> None:
    await tenant.group(rate)
    channel, _ = await one(tenant)
    claim = await tenant.claim_one()
    await tenant.commit(transient(claim, "platform", code="too many requests", retry_after_ms=2000))
    [waiting] = await tenant.backlog(channel, 1)

    told = await why(tenant, waiting)

    group = await tenant.db.fetchrow("SELECT * FROM platform_limits WHERE workspace_id = $1", tenant.workspace)
    assert group is not None
    assert (told["gate"], told["since"], told["until"]) == (
        "group_cooldown",
        group["updated_at"],
        group["next_allowed_at"],
    )
    assert (told["cause"]["code"], told["cause"]["rate_group"]) == ("too many requests", "bot")


async def test_the_slots_of_a_group_and_of_a_channel_are_told_apart(tenant: Tenant) -> None:
    await tenant.group(0.5)
    channel = await tenant.channel(rate_rps=0.1)
    _, waiting = await tenant.backlog(channel, 2)
    await tenant.commit(sent(await tenant.claim_one()))

    told = await why(tenant, waiting)
    later = await why(tenant, waiting, told["until"])

    assert (told["gate"], told["cause"]["rate_rps"], told["later"]) == ("group_slot", 0.5, ["channel_slot"])
    assert (later["gate"], later["until"]) == ("channel_slot", (await tenant.state(channel))["next_allowed_at"])
    assert (await why(tenant, waiting, later["until"]))["gate"] == "queued_behind"


async def test_a_full_channel_names_who_is_in_the_way(tenant: Tenant) -> None:
    channel = await tenant.channel(max_parallel=1)
    flying, waiting = await tenant.backlog(channel, 2)
    claim = await tenant.claim_one()

    told, much_later = await why(tenant, waiting), await why(tenant, waiting, soon())

    assert (told["gate"], told["released_by"], told["command"]) == ("max_parallel", "commit", None)
    assert told["until"] == claim["sending_lease_until"]
    assert told["cause"] == {"sending": 1, "max_parallel": 1, "deliveries": [str(flying)]}
    assert (much_later["released_by"], much_later["command"]) == (
        "monitor",
        f"autopost queue release --workspace {tenant.workspace} --reason '…'",
    )


async def test_a_lease_belongs_to_its_worker_and_then_to_the_monitor(tenant: Tenant) -> None:
    _, delivery = await one(tenant)
    claim = await tenant.claim_one()

    told, over = await why(tenant, delivery), await why(tenant, delivery, soon())

    assert (told["gate"], told["until"], told["released_by"]) == ("lease", claim["sending_lease_until"], "commit")
    assert (over["gate"], over["released_by"]) == ("lease", "monitor")


async def test_what_was_claimed_by_hand_has_its_lease_from_then(tenant: Tenant) -> None:
    _, delivery = await one(tenant)
    at = datetime.now(UTC)
    await tenant.set_delivery(delivery, "status = 'claimed', claim_token = gen_random_uuid(), claimed_at = $3", at)

    told = await why(tenant, delivery)

    assert (told["gate"], told["since"], told["until"]) == ("lease", at, at + timedelta(seconds=300))


async def test_what_has_ended_has_no_gate(tenant: Tenant) -> None:
    _, delivery = await one(tenant)
    await tenant.commit(sent(await tenant.claim_one()))

    assert await tenant.db.fetch("SELECT * FROM why_delivery($1, $2)", tenant.workspace, [delivery, uuid4()]) == []
