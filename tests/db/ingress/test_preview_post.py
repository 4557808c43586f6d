"""The preview decides like the real thing, for all channels at once, and cannot write."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from db.enqueue.test_routed_channels import TABLE, TEXT
from db.support.builders import Tenant, sent
from db.support.senders import Sender, make_sender

SOON = timedelta(hours=2)


async def preview(sender: Sender, post: dict[str, Any], payload_hash: str = "hash") -> dict[str, Any]:
    query = "SELECT preview_post($1, $2, $3, $4)"
    answer = await sender.tenant.db.fetchval(
        query, sender.tenant.workspace, sender.endpoint, json.dumps(post), payload_hash
    )
    found: dict[str, Any] = json.loads(answer)
    return found


async def channels(sender: Sender, text: str = "text", **fields: Any) -> dict[UUID, dict[str, Any]]:
    found = await preview(sender, await sender.tenant.post(text, **fields))
    return {UUID(channel["channel_id"]): channel for channel in found["channels"]}


@pytest.fixture
async def sender(tenant: Tenant) -> Sender:
    return await make_sender(tenant)


async def test_it_is_stable_so_the_database_refuses_its_every_write(tenant: Tenant) -> None:
    query = "SELECT provolatile FROM pg_proc WHERE proname = 'preview_post'"

    assert await tenant.db.fetchval(query) == b"s"


async def test_it_works_in_a_transaction_that_may_only_read(tenant: Tenant, sender: Sender, database: Any) -> None:
    await tenant.channel()
    post = await tenant.post("a")
    connection = await database.connect()

    async with connection.transaction(readonly=True):
        found = await preview(sender.on(connection), post)

    assert [channel["routed"] for channel in found["channels"]] == [True]


async def test_every_channel_is_told_whether_the_post_goes_there_and_what_keeps_it_away(
    tenant: Tenant, sender: Sender
) -> None:
    told = {}

    for name, (columns, post, expected) in TABLE.items():
        paused = columns.get("paused_until")
        channel = await tenant.channel(**{key: value for key, value in columns.items() if key != "paused_until"})
        if paused:
            await tenant.set_channel(channel, "paused_until = 'infinity'")
        found = await preview(sender, {"payload": TEXT, "tags": [], **post})
        [decision] = [one for one in found["channels"] if one["channel_id"] == str(channel)]
        told[name] = (decision["routed"], decision["routed"] == (decision["kept_by"] == []))
        assert decision["routed"] == expected, name

    assert {agrees for _, agrees in told.values()} == {True}


@pytest.mark.parametrize(
    ("columns", "post", "kept_by"),
    [
        ({"enabled": False}, {}, ["disabled"]),
        ({"route_filter": {"include_any": ["a"]}}, {"tags": ["b"]}, ["include_any"]),
        ({"route_filter": {"include_all": ["a", "b"]}}, {"tags": ["b"]}, ["include_all"]),
        ({"route_filter": {"exclude": ["b"]}}, {"tags": ["b"]}, ["exclude"]),
        ({"send_mode": "media"}, {}, ["send_mode"]),
        ({}, {"routing": {"channels": [str(uuid4())]}}, ["routing.channels"]),
        ({"tags": ["x"]}, {"routing": {"channel_tags": ["y"]}}, ["routing.channel_tags"]),
        (
            {"enabled": False, "send_mode": "media", "route_filter": {"include_any": ["a"], "exclude": ["b"]}},
            {"tags": ["b"], "routing": {"channels": [str(uuid4())]}},
            ["disabled", "include_any", "exclude", "send_mode", "routing.channels"],
        ),
    ],
)
async def test_all_that_keeps_a_post_away_is_named(
    tenant: Tenant, sender: Sender, columns: dict[str, Any], post: dict[str, Any], kept_by: list[str]
) -> None:
    channel = await tenant.channel(**columns)

    assert (await channels(sender, **post))[channel]["kept_by"] == kept_by


async def test_a_twin_in_flight_or_within_its_time_is_named_and_no_other(tenant: Tenant, sender: Sender) -> None:
    waiting, done, old = await tenant.channels(3)
    await tenant.enqueue("text")
    ids = {row["channel_id"]: row["delivery_id"] for row in await tenant.deliveries()}
    for claim in await tenant.claim():
        if claim["channel_id"] != waiting:
            await tenant.commit(sent(claim))
    long_ago = datetime.now(UTC) - timedelta(hours=169)
    await tenant.set_delivery(ids[old], "sent_at = $3", long_ago)

    found = await channels(sender)

    assert found[waiting]["twin"] == {"delivery_id": str(ids[waiting]), "status": "sending", "until": None}
    assert found[done]["twin"]["delivery_id"] == str(ids[done])
    until = datetime.fromisoformat(found[done]["twin"]["until"])
    assert timedelta(hours=167) < until - datetime.now(UTC) < timedelta(hours=168)
    assert found[old]["twin"] is None
    again = await tenant.enqueue("text")
    assert again["deduped"] == len([one for one in found.values() if one["twin"]])


async def test_a_post_opens_when_schedule_pause_window_and_rates_allow_it(tenant: Tenant, sender: Sender) -> None:
    soon = datetime.now(UTC) + SOON
    free, paused, cooled, never = await tenant.channels(4)
    shut = await tenant.channel(window_mode="windowed", posting_window={})
    await tenant.set_channel(paused, "paused_until = $3", soon)
    await tenant.set_channel(cooled, "next_allowed_at = $3", soon)
    await tenant.set_channel(never, "paused_until = 'infinity'")

    now = await channels(sender)
    later = await channels(sender, scheduled_for=(soon + SOON).isoformat())

    assert {name: (now[name]["waits_for"], later[name]["waits_for"]) for name in now} == {
        free: ([], ["scheduled_for"]),
        paused: (["pause"], ["scheduled_for"]),
        cooled: (["rate"], ["scheduled_for"]),
        never: (["pause"], ["scheduled_for", "pause"]),
        shut: (["window"], ["scheduled_for", "window"]),
    }
    assert now[never]["opens_at"] is now[shut]["opens_at"] is None
    assert datetime.fromisoformat(now[paused]["opens_at"]) == datetime.fromisoformat(now[cooled]["opens_at"]) == soon
    opening = {datetime.fromisoformat(later[name]["opens_at"]) for name in (free, paused, cooled)}
    assert opening == {soon + SOON}


async def test_a_repeated_request_is_told_with_the_run_it_repeats(tenant: Tenant, sender: Sender) -> None:
    await tenant.channel()
    first = await sender.push("a", "same", source_ref="1")
    second = await sender.push("b", "body")

    by_ref = await preview(sender, await tenant.post("c", source_ref="1"))
    by_body = await preview(sender, await tenant.post("c"), "body")
    neither = await preview(sender, await tenant.post("c"), "same body under a source_ref of its own")
    await tenant.db.execute("UPDATE ingress_receipts SET received_at = received_at - interval '11 seconds'")
    too_late = await preview(sender, await tenant.post("c"), "body")

    assert (by_ref["receipt"]["of"], by_ref["receipt"]["run_id"]) == ("source_ref", first["run_id"])
    assert (by_body["receipt"]["of"], by_body["receipt"]["run_id"]) == ("payload", second["run_id"])
    assert neither["receipt"] is too_late["receipt"] is None


async def test_the_gate_is_asked_and_not_passed(tenant: Tenant) -> None:
    sender = await make_sender(tenant, rate=0.01)
    post = await tenant.post("a")

    before = [(await preview(sender, post))["retry_after_ms"] for _ in range(5)]
    verdicts = [(await sender.push())["verdict"] for _ in range(3)]
    after = (await preview(sender, post))["retry_after_ms"]

    assert before == [None] * 5
    assert verdicts == ["refused", "rate_limited", "rate_limited"]  # there is no channel
    assert 0 < after <= 100_000


async def test_the_profiles_are_those_that_the_post_is_routed_to(tenant: Tenant, sender: Sender) -> None:
    await tenant.db.execute(
        "INSERT INTO templates (workspace_id, template_id, version, body, defaults) "
        "VALUES ($1, 't', 1, 'old', '{}'), ($1, 't', 2, 'new', '{\"title\": \"News\"}')",
        tenant.workspace,
    )
    await tenant.channels(2, template_ref="t")
    await tenant.channel(enabled=False, platform="max")

    found = await preview(sender, await tenant.post("a") | {"renderings": []})

    [profile] = found["profiles"]
    assert (profile["template_version"], profile["template_body"]) == (2, "new")
    assert profile["template_defaults"] == {"title": "News"}
    assert {channel["profile_hash"] for channel in found["channels"] if channel["routed"]} == {profile["profile_hash"]}


async def test_another_workspace_is_never_seen(tenant: Tenant, sender: Sender) -> None:
    neighbour = await Tenant.create(tenant.db)
    await neighbour.channel()
    await neighbour.enqueue("text")
    mine = await tenant.channel()

    found = await preview(sender, await tenant.post("text"))

    assert [UUID(channel["channel_id"]) for channel in found["channels"]] == [mine]
    assert found["message_id"] is None


@pytest.mark.parametrize(
    "change",
    [
        "INSERT INTO templates (workspace_id, template_id, version, body) VALUES ($1, 't', 2, 'b')",
        "UPDATE templates SET body = 'b' WHERE workspace_id = $1",
        "UPDATE templates SET defaults = '{\"a\": 1}' WHERE workspace_id = $1",
        "DELETE FROM templates WHERE workspace_id = $1",
    ],
)
async def test_whatever_changes_a_template_is_a_new_profile(tenant: Tenant, change: str) -> None:
    """Else whoever remembers the old one would go on with it."""
    insert = "INSERT INTO templates (workspace_id, template_id, body) VALUES ($1, 't', 'a')"
    await tenant.db.execute(insert, tenant.workspace)
    channel = await tenant.channel(template_ref="t")
    other = await tenant.channel()
    query = "SELECT profile_hash FROM channels WHERE channel_id = $1"
    before = await tenant.db.fetchval(query, channel), await tenant.db.fetchval(query, other)

    await tenant.db.execute(change, tenant.workspace)

    assert await tenant.db.fetchval(query, channel) != before[0]
    assert await tenant.db.fetchval(query, other) == before[1]
