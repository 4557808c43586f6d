"""Start and update of a bot's action: idempotent, no way back, the first end stays; only real changes take a number."""

import asyncio
import json
import random
from collections import Counter
from typing import Any

from db.support.builders import Tenant
from db.support.senders import Sender, make_sender
from harness.databases import Database
from harness.eventually import eventually

CHAT = "7"


async def caller(tenant: Tenant, rate: float | None = None) -> Sender:
    sender = await make_sender(tenant, rate=rate)
    await tenant.db.execute("UPDATE workspace_endpoints SET kind = 'bot_api' WHERE endpoint_id = $1", sender.endpoint)
    return sender


async def change(sender: Sender, *changes: dict[str, Any]) -> list[dict[str, Any]]:
    query = "SELECT change_actions($1, $2, $3)"
    given = json.dumps([{"chat_id": CHAT, **one} for one in changes])
    results: list[dict[str, Any]] = json.loads(
        await sender.tenant.db.fetchval(query, sender.tenant.workspace, sender.endpoint, given)
    )
    return results


async def call(sender: Sender, name: str, action: str, **fields: Any) -> dict[str, Any]:
    [result] = await change(sender, {"call": name, "action_id": action, **fields})
    return result


async def start(sender: Sender, action: str = "a", **fields: Any) -> dict[str, Any]:
    return await call(sender, "start", action, **{"action_type": "summarize", **fields})


async def update(sender: Sender, action: str = "a", status: str = "done", **fields: Any) -> dict[str, Any]:
    return await call(sender, "update", action, status=status, **fields)


async def listed(tenant: Tenant, limit: int = 100) -> tuple[list[dict[str, Any]], int]:
    row = await tenant.db.fetchrow("SELECT * FROM list_actions($1, $2, $3)", tenant.workspace, CHAT, limit)
    assert row is not None
    return json.loads(row["actions"]), row["seq"]


async def changes(tenant: Tenant, after: int = 0, limit: int = 500) -> list[tuple[int, str]]:
    rows = await tenant.db.fetch("SELECT * FROM chat_changes($1, $2, $3, $4)", tenant.workspace, CHAT, after, limit)
    return [(row["seq"], row["kind"]) for row in rows]


async def test_of_a_hundred_starts_one_creates_and_the_others_move_its_time(tenant: Tenant) -> None:
    sender = await caller(tenant)

    answers = [await start(sender) for _ in range(100)]

    assert Counter(answer["verdict"] for answer in answers) == {"created": 1, "refreshed": 99}
    assert {answer["seq"] for answer in answers} == {1}
    assert answers[-1]["action"]["updatedAt"] > answers[0]["action"]["updatedAt"]
    assert answers[-1]["action"]["createdAt"] == answers[0]["action"]["createdAt"]


async def test_a_start_with_another_text_or_payload_is_a_change_and_key_order_is_none(tenant: Tenant) -> None:
    sender = await caller(tenant)
    await start(sender, display_text="one", payload={"a": 1, "b": 2})

    verdicts = [
        (await start(sender, **fields))["verdict"]
        for fields in (
            {},
            {"payload": {"b": 2, "a": 1}},
            {"display_text": "two"},
            {"display_text": "two"},
            {"display_text": None},
            {"payload": None},
            {"action_type": "process_file"},
        )
    ]

    assert verdicts == ["refreshed", "refreshed", "changed", "refreshed", "changed", "changed", "refreshed"]
    [action] = (await listed(tenant))[0]
    assert (action["displayText"], action["payload"], action["actionType"]) == (None, None, "summarize")


async def test_after_its_end_an_action_is_not_started_again(tenant: Tenant) -> None:
    sender = await caller(tenant)
    await start(sender)
    ended = await update(sender)

    again = await start(sender, display_text="again")

    assert (again["verdict"], again["action"]) == ("finished", ended["action"])
    assert (await listed(tenant)) == ([], 2)


async def test_the_first_end_stays_and_the_same_end_may_still_change_its_text(tenant: Tenant) -> None:
    sender = await caller(tenant)
    await start(sender, display_text="text")

    verdicts = [
        (await update(sender, **fields))["verdict"]
        for fields in (
            {"status": "done"},
            {"status": "done"},
            {"status": "error"},
            {"status": "done", "payload": {"pages": 3}},
            {"status": "done", "payload": {"pages": 3}},
        )
    ]

    assert verdicts == ["completed", "same", "ignored", "changed", "same"]
    assert (await update(sender))["action"]["displayText"] == "text"
    assert await changes(tenant) == [(3, "bot_action")]


async def test_an_update_before_its_start_writes_nothing(tenant: Tenant) -> None:
    sender = await caller(tenant)

    assert await update(sender) == {"verdict": "unknown"}
    assert (await tenant.count("bot_chats"), await tenant.count("bot_actions")) == (0, 0)


async def test_of_fifty_ends_at_once_one_wins_and_all_see_the_same_action(tenant: Tenant) -> None:
    sender = await caller(tenant)
    await start(sender)

    answers = await asyncio.gather(*(update(sender, status="done" if n % 2 else "error") for n in range(50)))

    verdicts = Counter(answer["verdict"] for answer in answers)
    assert verdicts["completed"] == 1
    assert set(verdicts) <= {"completed", "same", "ignored"}
    assert len({json.dumps(answer["action"], sort_keys=True) for answer in answers}) == 1
    assert await changes(tenant) == [(2, "bot_action")]


async def test_twins_of_a_first_start_make_one_action(tenant: Tenant) -> None:
    sender = await caller(tenant)

    answers = await asyncio.gather(*(start(sender) for _ in range(20)))

    assert Counter(answer["verdict"] for answer in answers) == {"created": 1, "refreshed": 19}


async def test_the_list_has_what_is_under_way_by_its_last_change(tenant: Tenant) -> None:
    sender = await caller(tenant)
    for action in "abc":
        await start(sender, action)
    await start(sender, "a")
    await update(sender, "b")

    actions, seq = await listed(tenant)

    assert [action["actionId"] for action in actions] == ["a", "c"]
    assert seq == 4


async def test_a_reader_sees_every_change_after_its_number_in_order(tenant: Tenant) -> None:
    sender = await caller(tenant)
    seen = (await start(sender, "a"))["seq"]
    await asyncio.gather(*(start(sender, f"b{n}") for n in range(20)))

    assert await changes(tenant, after=seen) == [(n, "bot_action") for n in range(2, 22)]
    assert await changes(tenant, after=21) == []
    assert await changes(tenant, after=0, limit=5) == [(21, "resync")]
    assert await changes(tenant, after=22) == [(21, "resync")]


async def test_a_reader_further_behind_than_retention_reads_anew(tenant: Tenant) -> None:
    sender = await caller(tenant)
    await start(sender)
    await update(sender)
    assert await tenant.db.fetchval("SELECT retain_bot_actions(interval '0', 10)") == 1

    assert await changes(tenant, after=1) == [(2, "resync")]
    assert await changes(tenant, after=2) == []


async def test_a_paused_workspace_starts_nothing_and_ends_what_runs(tenant: Tenant) -> None:
    sender = await caller(tenant)
    await start(sender)
    await tenant.db.execute("UPDATE workspaces SET status = 'paused' WHERE workspace_id = $1", tenant.workspace)

    assert await start(sender, "b") == {"verdict": "workspace_paused"}
    assert (await update(sender))["verdict"] == "completed"


async def test_a_disabled_workspace_or_endpoint_takes_nothing(tenant: Tenant) -> None:
    sender = await caller(tenant)
    await tenant.db.execute("UPDATE workspaces SET status = 'disabled' WHERE workspace_id = $1", tenant.workspace)
    assert (await update(sender))["verdict"] == "workspace_disabled"

    await tenant.db.execute("UPDATE workspace_endpoints SET enabled = false WHERE endpoint_id = $1", sender.endpoint)
    assert (await update(sender))["verdict"] == "endpoint_disabled"


async def test_over_the_rate_of_the_endpoint_a_call_is_told_to_wait(tenant: Tenant) -> None:
    sender = await caller(tenant, rate=0.01)
    await start(sender)

    refused = await start(sender, "b")

    assert refused["verdict"] == "rate_limited"
    assert 0 < refused["wait_ms"] <= 100_000


async def test_of_several_calls_as_many_pass_as_the_rate_allows(tenant: Tenant) -> None:
    sender = await caller(tenant, rate=3)

    results = await change(sender, *({"call": "start", "action_id": f"a{n}", "action_type": "x"} for n in range(5)))

    assert [result["verdict"] for result in results] == ["created"] * 3 + ["rate_limited"] * 2
    assert 0 < results[-1]["wait_ms"] <= 1000
    assert await tenant.count("bot_actions") == 3


async def test_several_calls_are_answered_in_their_order(tenant: Tenant) -> None:
    sender = await caller(tenant)
    await start(sender, "old")
    await tenant.db.execute("UPDATE workspaces SET status = 'paused' WHERE workspace_id = $1", tenant.workspace)

    results = await change(
        sender,
        {"call": "update", "chat_id": "9", "action_id": "a", "status": "done"},
        {"call": "update", "action_id": "old", "status": "done"},
        {"call": "start", "action_id": "new", "action_type": "x"},
        {"call": "update", "chat_id": "1", "action_id": "a", "status": "error"},
        {"call": "update", "action_id": "old", "status": "error"},
    )

    verdicts = [result["verdict"] for result in results]
    assert verdicts == ["unknown", "completed", "workspace_paused", "unknown", "ignored"]


async def test_calls_for_the_same_chats_in_any_order_never_lock_each_other_out(tenant: Tenant) -> None:
    sender = await caller(tenant)
    rng = random.Random(22)

    async def several(turn: int) -> list[dict[str, Any]]:
        chats = rng.sample(range(12), 12)
        return await change(
            sender,
            *({"call": "start", "chat_id": str(n), "action_id": f"{turn}", "action_type": "x"} for n in chats),
        )

    answers = await asyncio.gather(*(several(turn) for turn in range(16)))

    assert {result["verdict"] for results in answers for result in results} == {"created"}
    assert await tenant.db.fetchval("SELECT min(seq) FROM bot_chats WHERE chat_id = '3'") == 16


async def age(tenant: Tenant, action: str, text: str) -> None:
    await tenant.db.execute(
        "UPDATE bot_actions SET created_at = clock_timestamp() - $3::text::interval"
        " WHERE workspace_id = $1 AND action_id = $2",
        *(tenant.workspace, action, text),
    )


async def expire(tenant: Tenant, limit: int = 100) -> list[tuple[int, int]]:
    rows = await tenant.db.fetch(
        "SELECT * FROM expire_bot_actions($1, interval '2 hours', $2)", tenant.workspace, limit
    )
    return [(row["expired"], row["seq"]) for row in rows]


async def test_what_nobody_ends_in_two_hours_of_its_creation_ends_as_a_timeout(tenant: Tenant) -> None:
    sender = await caller(tenant)
    for action in ("old", "older", "young"):
        await start(sender, action, payload={"file": 1})
    await age(tenant, "old", "2 hours 1 second")
    await age(tenant, "older", "9 hours")
    await age(tenant, "young", "1 hour 59 minutes")
    await start(sender, "old")  # a repeated start keeps nothing alive

    assert await expire(tenant) == [(2, 5)]
    assert await expire(tenant) == []
    late = await update(sender, "old")
    assert (late["verdict"], late["action"]["status"]) == ("ignored", "error")
    assert late["action"]["payload"] == {"file": 1, "error": "timeout"}
    assert [action["actionId"] for action in (await listed(tenant))[0]] == ["young"]
    assert [event["what"] for event in await tenant.events()] == ["bot_action_expired"] * 2


async def test_one_call_ends_no_more_than_it_is_told_even_in_one_chat(tenant: Tenant) -> None:
    sender = await caller(tenant)
    for action in "abc":
        await start(sender, action)
        await age(tenant, action, "3 hours")

    assert [await expire(tenant, limit=2) for _ in range(3)] == [[(2, 5)], [(1, 6)], []]


async def test_a_list_has_the_newest_actions_up_to_its_limit(tenant: Tenant) -> None:
    sender = await caller(tenant)
    for action in "abc":
        await start(sender, action)
    await start(sender, "a")

    assert [action["actionId"] for action in (await listed(tenant, limit=2))[0]] == ["a", "c"]


async def test_the_watchdog_leaves_a_paused_workspace_alone(tenant: Tenant) -> None:
    sender = await caller(tenant)
    await start(sender)
    await age(tenant, "a", "3 hours")
    await tenant.db.execute("UPDATE workspaces SET status = 'paused' WHERE workspace_id = $1", tenant.workspace)

    assert await expire(tenant) == []


async def test_a_chat_that_is_locked_does_not_keep_others_from_their_timeout(
    tenant: Tenant, database: Database
) -> None:
    sender = await caller(tenant)
    for action in ("a", "b", "c"):
        await start(sender, action)
        await age(tenant, action, "4 hours")
    await call(sender, "start", "d", chat_id="another", action_type="summarize")
    await age(tenant, "d", "3 hours")
    busy = await database.connect()
    async with busy.transaction():
        await busy.execute("SELECT advance_chat($1, $2, 0)", tenant.workspace, CHAT)
        assert await expire(tenant, limit=2) == [(1, 2)]
        assert await expire(tenant, limit=2) == []

    assert await expire(tenant, limit=2) == [(2, 5)]
    assert await expire(tenant, limit=2) == [(1, 6)]


async def test_an_end_that_holds_the_chat_comes_before_the_watchdog(tenant: Tenant, database: Database) -> None:
    sender = await caller(tenant)
    await start(sender)
    await age(tenant, "a", "3 hours")
    ending = await database.connect()
    async with ending.transaction():
        given = json.dumps({"chat_id": CHAT, "action_id": "a", "status": "done"})
        await ending.execute("SELECT update_action($1, $2)", tenant.workspace, given)
        assert await expire(tenant) == []  # it does not wait

    assert await expire(tenant) == []
    assert (await update(sender))["action"]["status"] == "done"
    assert await changes(tenant, after=1) == [(2, "bot_action")]


async def test_a_watchdog_that_holds_the_chat_comes_before_a_late_end(tenant: Tenant, database: Database) -> None:
    sender = await caller(tenant)
    await start(sender)
    await age(tenant, "a", "3 hours")
    watchdog = await database.connect()
    async with watchdog.transaction():
        await watchdog.execute("SELECT expire_bot_actions($1, interval '2 hours', 100)", tenant.workspace)
        late = asyncio.create_task(update(sender))
        await eventually(lambda: waits_for_a_lock(tenant))

    assert ((await late)["verdict"], (await late)["action"]["payload"]) == ("ignored", {"error": "timeout"})
    assert await changes(tenant, after=1) == [(2, "bot_action")]


async def test_an_end_and_the_watchdog_at_once_are_one_end(tenant: Tenant) -> None:
    sender = await caller(tenant)
    for n in range(20):
        await start(sender, f"a{n}")
        await age(tenant, f"a{n}", "3 hours")

    answers = await asyncio.gather(*(update(sender, f"a{n}") for n in range(20)), expire(tenant))

    done = [answer for answer in answers[:-1] if isinstance(answer, dict) and answer["verdict"] == "completed"]
    expired = sum(count for count, _ in (*answers[-1], *(await expire(tenant))))  # type: ignore[misc]
    assert len(done) + expired == 20
    assert await tenant.db.fetchval("SELECT seq FROM bot_chats WHERE workspace_id = $1", tenant.workspace) == 40


async def test_a_later_number_of_a_chat_is_never_committed_first(tenant: Tenant, database: Database) -> None:
    """So a reader that has seen a number misses none before it."""
    sender = await caller(tenant)
    first = await database.connect()
    async with first.transaction():
        seq = await first.fetchval("SELECT advance_chat($1, $2)", tenant.workspace, CHAT)
        later = asyncio.create_task(start(sender))
        await eventually(lambda: waits_for_a_lock(tenant))
        assert not later.done()
    assert (seq, (await later)["seq"]) == (1, 2)


async def waits_for_a_lock(tenant: Tenant) -> bool:
    query = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    return bool(await tenant.db.fetchval(query))
