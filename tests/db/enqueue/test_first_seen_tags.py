"""A content goes by the tags that it was first seen with; one that no channel takes was not seen."""

import asyncio
import json
from typing import Any
from uuid import uuid4

import asyncpg
import pytest
from db.support.builders import Tenant, is_waiting, running
from db.support.senders import Sender, make_sender
from db.support.verified import differences
from harness.databases import Database
from harness.eventually import eventually


@pytest.fixture
async def sender(tenant: Tenant) -> Sender:
    """Two channels, for the tags a and b."""
    for tag in ("a", "b"):
        await tenant.channel(route_filter={"include_any": [tag]})
    return await make_sender(tenant)


async def push(sender: Sender, tags: list[str], text: str = "hello", **fields: Any) -> dict[str, Any]:
    return await sender.push(text, payload_hash=uuid4().hex, tags=tags, **fields)


async def reached(tenant: Tenant) -> list[str]:
    rows = await tenant.db.fetch(
        "SELECT c.route_filter #>> '{include_any,0}' AS tag FROM deliveries d JOIN channels c USING (channel_id) "
        "ORDER BY d.created_at, tag"
    )
    return [row["tag"] for row in rows]


async def unrouted(tenant: Tenant) -> list[dict[str, Any]]:
    return [
        dict(row) | {"error": json.loads(row["error"]), "meta": json.loads(row["meta"])}
        for row in await tenant.db.fetch(
            "SELECT delivery_id, message_id, channel_id, result::text, error, meta FROM events "
            "WHERE action = 'enqueue' AND result = 'error' ORDER BY seq"
        )
    ]


async def test_a_repeat_with_other_tags_goes_by_the_first_ones_and_says_both(tenant: Tenant, sender: Sender) -> None:
    await push(sender, ["a"])

    again = await push(sender, ["b"])

    assert (again["routed"], again["enqueued"], again["deduped"], again["first_tags"]) == (1, 0, 1, ["a"])
    assert await reached(tenant) == ["a"]
    [event] = await tenant.events("message_tag_mismatch")
    assert json.loads(event["meta"])["kept"] == ["a"]
    assert json.loads(event["meta"])["given"] == ["b"]


async def test_a_repeat_with_the_same_tags_says_nothing_of_tags(tenant: Tenant, sender: Sender) -> None:
    answers = [await push(sender, ["a"]), await push(sender, ["a"])]

    assert [answer.get("first_tags") for answer in answers] == [None, None]
    assert await tenant.events("message_tag_mismatch") == []


async def test_after_the_ttl_a_repeat_with_other_tags_goes_where_the_first_went(tenant: Tenant, sender: Sender) -> None:
    await push(sender, ["a"])
    await tenant.drain()
    await tenant.db.execute("UPDATE deliveries SET sent_at = now() - interval '8 days', updated_at = now()")

    again = await push(sender, ["b"])

    assert (again["enqueued"], again["first_tags"]) == (1, ["a"])
    assert await reached(tenant) == ["a", "a"]


async def test_a_post_that_no_channel_takes_leaves_its_event_and_run_and_nothing_else(
    tenant: Tenant, sender: Sender
) -> None:
    answer = await push(sender, ["c"], source_ref="42")

    assert (answer["verdict"], answer["message_id"], answer["routed"]) == ("refused", None, 0)
    [event] = await unrouted(tenant)
    assert (event["delivery_id"], event["message_id"], event["channel_id"]) == (None, None, None)
    assert event["error"]["code"] == "no_channel"
    assert (event["meta"]["run_id"], event["meta"]["trace_id"]) == (answer["run_id"], "trace")
    assert (event["meta"]["tags"], event["meta"]["source_ref"]) == ("c", "42")
    for table in ("messages", "renderings", "deliveries", "ingress_receipts"):
        assert await tenant.count(table) == 0
    [stats] = await sender.runs()
    assert (stats["routed"], stats["enqueued"]) == (0, 0)


async def test_the_same_content_and_source_ref_with_the_right_tag_is_accepted_afterwards(
    tenant: Tenant, sender: Sender
) -> None:
    await push(sender, ["c"], source_ref="42")

    answer = await push(sender, ["a"], source_ref="42")

    assert (answer["verdict"], answer["new"], answer["enqueued"], answer.get("first_tags")) == (
        "accepted", True, 1, None,
    )  # fmt: skip
    assert await tenant.db.fetchval("SELECT tags FROM messages") == ["a"]
    assert await tenant.events("message_tag_mismatch") == []


async def test_a_seen_content_whose_first_tags_reach_nobody_any_more_says_so_and_stays(
    tenant: Tenant, sender: Sender
) -> None:
    first = await push(sender, ["a"])
    await tenant.db.execute("UPDATE channels SET enabled = false")

    again = await push(sender, ["a"], source_ref="42")

    assert (again["message_id"], again["routed"]) == (first["message_id"], 0)
    [event] = await unrouted(tenant)
    assert str(event["message_id"]) == first["message_id"]
    assert await tenant.count("messages") == 1
    assert await tenant.db.fetchval("SELECT count(*) FROM ingress_receipts WHERE source_ref = '42'") == 0


async def test_a_repeat_asks_for_the_profiles_of_the_first_tags(tenant: Tenant, sender: Sender) -> None:
    """Its own tags lead to nobody, so by them nothing would be missing."""
    await push(sender, ["a"])

    answer = await push(sender, ["c"], renderings=[])

    assert (answer["verdict"], len(answer["missing_profiles"])) == ("missing_profiles", 1)
    assert await tenant.db.fetchval("SELECT seen_count FROM messages") == 1


async def test_what_is_not_looked_up_is_found_under_the_lock_and_asked_again(tenant: Tenant, sender: Sender) -> None:
    await push(sender, ["a"])
    await tenant.drain()
    await tenant.db.execute("UPDATE deliveries SET sent_at = now() - interval '8 days'")
    again = await tenant.post("hello", tags=["b"])
    await tenant.db.execute(
        "UPDATE channels SET settings = '{\"overflow\": \"split\"}' WHERE route_filter ? 'include_any'"
    )
    own = await tenant.db.fetchval("SELECT profile_hash FROM channels LIMIT 1")
    await tenant.set_channel(await _channel_of(tenant, "b"), "settings = '{}'")

    with pytest.raises(asyncpg.SerializationError):
        await sender.admit_all([again], ["1"], look_up=False)
    [answer] = await sender.admit_all([again], ["1"], look_up=True)

    assert [profile["profile_hash"] for profile in answer["missing_profiles"]] == [own]
    assert await tenant.db.fetchval("SELECT seen_count FROM messages") == 1


async def _channel_of(tenant: Tenant, tag: str) -> Any:
    query = "SELECT channel_id FROM channels WHERE route_filter #>> '{include_any,0}' = $1"
    return await tenant.db.fetchval(query, tag)


ORDERS = {
    "the first that is taken decides": ([["c"], ["a"], ["b"]], ["a"], [0, 1, 1], [None, None, ["a"]]),
    "what nobody takes comes last": ([["b"], ["c"]], ["b"], [1, 1], [None, ["b"]]),
    "nobody takes any": ([["c"], ["d"]], [], [0, 0], [None, None]),
}


@pytest.mark.parametrize(("tags", "channels", "routed", "first"), ORDERS.values(), ids=ORDERS)
async def test_twins_of_one_batch_are_judged_in_their_order(
    tenant: Tenant, sender: Sender, tags: list[list[str]], channels: list[str], routed: list[int], first: list[Any]
) -> None:
    posts = [await tenant.post("hello", tags=each) for each in tags]

    answers = await tenant.put_batch([{**post, "run_id": str(uuid4())} for post in posts])

    assert [answer["routed"] for answer in answers] == routed
    assert [answer.get("first_tags") for answer in answers] == first
    assert await reached(tenant) == channels
    assert len(await unrouted(tenant)) == routed.count(0)


async def test_a_twin_that_waits_for_one_that_nobody_takes_is_new(
    database: Database, tenant: Tenant, sender: Sender
) -> None:
    holder, waiter = await database.connect(), await database.connect()
    async with holder.transaction():
        await push(sender.on(holder), ["c"])
        twin = running(push(sender.on(waiter), ["a"]))
        await eventually(lambda: _settled(tenant, waiter, twin))

    answer = await twin

    assert (answer["new"], answer["enqueued"]) == (True, 1)
    assert await tenant.db.fetchval("SELECT tags FROM messages") == ["a"]


async def test_a_twin_that_waits_for_one_with_other_tags_goes_by_those(
    database: Database, tenant: Tenant, sender: Sender
) -> None:
    """It was routed by its own tags before it had to wait, and has renderings for those alone."""
    await tenant.db.execute(
        "UPDATE channels SET settings = '{\"overflow\": \"split\"}' WHERE route_filter ->> 'include_any' = '[\"b\"]'"
    )
    post = await tenant.post("hello")
    own = await tenant.db.fetchval("SELECT profile_hash FROM channels WHERE settings <> '{}'")
    poor = [each for each in post["renderings"] if each["profile_hash"] == own]
    holder, waiter = await database.connect(), await database.connect()
    async with holder.transaction():
        await push(sender.on(holder), ["a"])
        twin = running(push(sender.on(waiter), ["b"], renderings=poor))
        await eventually(lambda: is_waiting(tenant.db, waiter.get_server_pid()))

    answer = await twin

    assert (answer["routed"], answer["deduped"], answer["first_tags"]) == (1, 1, ["a"])
    assert await reached(tenant) == ["a"]


async def test_of_many_twins_with_all_kinds_of_tags_one_decides_for_all(tenant: Tenant, sender: Sender) -> None:
    for turn in range(15):
        text = f"twins {turn}"
        tags = [["a"], ["b"], ["c"], ["a", "b"]] * 3
        answers = await asyncio.gather(*(push(sender, each, text, source_ref=str(uuid4())) for each in tags))

        [kept] = await tenant.db.fetch("SELECT message_id, tags FROM messages WHERE payload ->> 'text' = $1", text)
        went = await tenant.db.fetch(
            "SELECT c.route_filter #>> '{include_any,0}' AS tag FROM deliveries d JOIN channels c USING (channel_id) "
            "WHERE d.message_id = $1 ORDER BY tag",
            kept["message_id"],
        )
        assert [row["tag"] for row in went] == kept["tags"]
        for given, answer in zip(tags, answers, strict=True):
            if answer["message_id"] is None:
                assert (given, answer["routed"]) == (["c"], 0)
            else:
                assert answer.get("first_tags") == (None if given == kept["tags"] else kept["tags"])
    assert await differences(tenant.db, tenant.workspace) == []


async def _settled(tenant: Tenant, connection: Any, task: Any) -> bool:
    return task.done() or await is_waiting(tenant.db, connection.get_server_pid())
