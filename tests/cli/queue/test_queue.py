"""`autopost queue`: what was given up comes back by name or by filter, counted first; refusals are words and codes."""

import os
import sys
from asyncio.subprocess import PIPE, create_subprocess_exec
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import pytest
from db.support.builders import Tenant, permanent, transient
from db.support.operators import dead, refused
from harness.autopost_command import Autopost
from harness.databases import Database

SIGNED = ("--operator", "ann", "--reason", "mended")


@pytest.fixture
async def tenant(database: Database) -> Tenant:
    return await Tenant.create(database.pool)


@pytest.fixture
def autopost(database: Database, tenant: Tenant) -> Autopost:
    return Autopost(database.url)


async def statuses(tenant: Tenant) -> list[str]:
    return [row["status"] for row in await tenant.deliveries()]


async def requeued(tenant: Tenant) -> set[UUID]:
    return {event["delivery_id"] for event in await tenant.events("manual_requeue")}


async def test_by_filter_it_counts_asks_and_moves_in_batches(autopost: Autopost, tenant: Tenant) -> None:
    given_up = await dead(tenant, await tenant.channel(), 8)

    no = await autopost("queue", "requeue", "--all", *SIGNED, stdin="n\n")
    untouched = await requeued(tenant)
    yes = await autopost("queue", "requeue", "--all", *SIGNED, "--batch", "3", stdin="y\n")

    assert (no.code, untouched) == (1, set())
    assert "Requeue 8 deliveries as ann?" in no.err
    assert (yes.code, await requeued(tenant)) == (0, set(given_up))
    assert len({str(event["xid"]) for event in await tenant.events("manual_requeue")}) == 3


async def test_what_is_given_up_while_it_asks_was_not_counted_and_does_not_move(
    autopost: Autopost, tenant: Tenant
) -> None:
    channel = await tenant.channel()
    [counted] = await dead(tenant, channel)
    process = await create_subprocess_exec(
        *(sys.executable, "-m", "autopost_cli", "queue", "requeue", "--all", *SIGNED),
        env={"PATH": os.defpath, **{name: value for name, value in autopost.env.items() if value}},
        **{"stdin": PIPE, "stdout": PIPE, "stderr": PIPE},
    )
    assert process.stderr
    await process.stderr.readuntil(b"deliveries as ann?")
    [later] = await dead(tenant, channel)

    await process.communicate(b"y\n")

    assert process.returncode == 0
    assert await requeued(tenant) == {counted}
    assert (await tenant.delivery(later))["status"] == "dead"


async def test_what_is_refused_in_one_batch_does_not_hold_up_the_next(autopost: Autopost, tenant: Tenant) -> None:
    """Of a channel that is switched off: they stay given up, and would be found again and again."""
    closed = await tenant.channel()
    for _ in range(3):
        await refused(tenant, closed, scope="channel")
        await tenant.set_channel(closed, "enabled = true, paused_until = NULL, error_streak = 0")
    await tenant.set_channel(closed, "enabled = false")
    given_up = await dead(tenant, await tenant.channel(), 3)

    ran = await autopost("queue", "requeue", "--all", "--yes", "--batch", "2", "--json", *SIGNED)

    assert ran.code == 0
    assert ran.json["verdicts"] == {"requeued": 3, "channel_disabled": 3} == ran.json["counted"]
    assert await requeued(tenant) == set(given_up)


async def test_filters_narrow_by_status_code_channel_message_and_time(autopost: Autopost, tenant: Tenant) -> None:
    here, there = await tenant.channel(title="Here"), await tenant.channel(title="There")
    [one] = await dead(tenant, here)
    [other] = await dead(tenant, there)
    failed = await refused(tenant, there)
    await tenant.db.execute(
        "UPDATE dead_letters SET given_up_at = now() - interval '3 hours' WHERE delivery_id = $1", one
    )
    message = (await tenant.delivery(other))["message_id"]

    async def found(*words: object) -> int:
        ran = await autopost("queue", "requeue", *words, *SIGNED, "--dry-run", "--json")
        assert ran.code == (0 if ran.json["counted"] else 1)
        count: int = ran.json["counted"].get("requeued", 0)
        return count

    two_hours_ago = (datetime.now(UTC) - timedelta(hours=2)).isoformat()
    assert [
        await found("--status", "dead"),
        await found("--status", "failed_permanent"),
        await found("--code", "boom"),
        await found("--code", "other"),
        await found("--channel", "here"),
        await found("--channel", there),
        await found("--message", message),
        await found("--since", "2h"),
        await found("--until", two_hours_ago),
        await found("--status", "dead", "--since", two_hours_ago),
    ] == [2, 1, 3, 0, 1, 2, 1, 2, 1, 1]
    assert await statuses(tenant) == ["dead", "dead", "failed_permanent"]
    assert failed


async def test_a_twin_that_waits_refuses_unless_it_is_forced(autopost: Autopost, tenant: Tenant) -> None:
    await tenant.channel()
    await tenant.enqueue("same", max_attempts=1)
    await tenant.commit(transient(await tenant.claim_one()))
    first = (await tenant.only_delivery())["delivery_id"]
    await tenant.enqueue("same")

    plain = await autopost("queue", "requeue", first, *SIGNED, "--json")
    forced = await autopost("queue", "requeue", first, *SIGNED, "--json", "--force", "--attempts", "1")

    assert (plain.code, plain.json["results"][0]["verdict"]) == (1, "twin_in_flight")
    assert (forced.code, forced.json["results"][0]["max_attempts"]) == (0, 2)


async def test_what_was_skipped_leaves_the_filter_and_cannot_be_skipped_twice(
    autopost: Autopost, tenant: Tenant
) -> None:
    one, other = await dead(tenant, await tenant.channel(), 2)

    first = await autopost("queue", "skip", one, *SIGNED)
    again = await autopost("queue", "skip", one, other, *SIGNED, "--json")
    left = await autopost("queue", "requeue", "--all", "--dry-run", "--json", *SIGNED)

    assert (first.code, again.code) == (0, 1)
    assert {row["verdict"] for row in again.json["results"]} == {"already_skipped", "skipped"}
    assert left.json["counted"] == {}


async def test_what_is_not_held_is_not_resolved(autopost: Autopost, tenant: Tenant) -> None:
    [delivery] = await dead(tenant, await tenant.channel())

    ran = await autopost("queue", "resolve", delivery, "resend", *SIGNED, "--json")

    assert (ran.code, ran.json["results"][0]["verdict"]) == (1, "not_held")


async def test_release_leaves_a_running_lease_alone_unless_it_is_forced(autopost: Autopost, tenant: Tenant) -> None:
    await tenant.backlog(await tenant.channel(), 1)
    await tenant.claim_one()

    plain = await autopost("queue", "release", *SIGNED)
    forced = await autopost("queue", "release", "--force", *SIGNED)

    assert (plain.code, "No expired leases found." in plain.out) == (1, True)
    assert (forced.code, await statuses(tenant)) == (0, ["retry"])


async def test_release_says_which_places_it_has_counted_anew(autopost: Autopost, tenant: Tenant) -> None:
    channel = await tenant.channel()
    for_nobody = "UPDATE channel_counters SET total = total + 2 WHERE channel_id = $1 AND side = 'started'"

    await tenant.db.execute(for_nobody, channel)
    text = await autopost("queue", "release", *SIGNED, "--dry-run")
    mended = await autopost("queue", "release", *SIGNED, "--json")
    right = await autopost("queue", "release", *SIGNED, "--json")

    drift = {"channel_id": str(channel), "what": "in_flight", "was": "2", "is_now": "0"}
    assert (text.code, "in_flight" in text.out) == (0, True)
    assert (mended.code, mended.json) == (0, {"dry_run": False, "results": [], "recounted": [drift]})
    assert (right.code, right.json) == (1, {"dry_run": False, "results": [], "recounted": []})


async def test_errors_show_what_broke_and_where(autopost: Autopost, tenant: Tenant) -> None:
    await tenant.backlog(await tenant.channel(title="News"), 1)
    await tenant.commit(permanent(await tenant.claim_one(), code="chat_gone", message="the chat\nis gone"))

    text = await autopost("queue", "errors")
    none = await autopost("queue", "errors", "--window", "1s", "--limit", "1", "--json")

    [line] = [line for line in text.out.splitlines() if "failed_permanent" in line]
    assert "chat_gone" in line
    assert "News" in line
    assert "the chat is gone" in line
    assert len(none.json["errors"]) <= 1


async def test_the_snapshot_is_of_all_workspaces_or_of_the_one_that_is_named(
    autopost: Autopost, tenant: Tenant, database: Database
) -> None:
    other = await Tenant.create(database.pool)
    await tenant.db.execute("UPDATE workspaces SET name = 'Big News' WHERE workspace_id = $1", other.workspace)
    await dead(other, await other.channel())

    all_, one = (
        await autopost("queue", "snapshot", "--json"),
        await autopost("queue", "snapshot", "--workspace", "BIG-NEWS"),
    )

    assert [found["name"] for found in all_.json["workspaces"]] == ["Big News", "test"]
    assert "dead 1" in one.out
    assert "test" not in one.out


async def test_which_workspace_must_be_clear(autopost: Autopost, tenant: Tenant, database: Database) -> None:
    only = await autopost("queue", "errors", "--json")
    await Tenant.create(database.pool)
    which, both, unknown = [
        await autopost("queue", "errors", *words) for words in ((), ("--workspace", "test"), ("--workspace", "nobody"))
    ]
    by_id = await autopost("queue", "errors", "--workspace", tenant.workspace)

    assert [ran.code for ran in (only, which, both, unknown, by_id)] == [0, 2, 2, 2, 0]
    assert "several workspaces: test, test" in which.err
    assert str(tenant.workspace) in both.err


async def test_the_operator_may_come_from_the_environment_and_is_told(database: Database, tenant: Tenant) -> None:
    [delivery] = await dead(tenant, await tenant.channel())

    ran = await Autopost(database.url, AUTOPOST_OPERATOR="beth")("queue", "skip", delivery, "--reason", "old")

    [event] = await tenant.events("manual_skip")
    assert ran.code == 0
    assert '"operator": "beth"' in event["meta"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("queue", "requeue", *SIGNED), "give either delivery ids or a filter"),
        (("queue", "requeue", uuid4(), "--all", *SIGNED), "not both"),
        (("queue", "requeue", "--all", "--json", *SIGNED), "add --yes"),
        (("queue", "requeue", "--all", "--since", "yesterday", *SIGNED), "is not a time"),
        (("queue", "requeue", "--all", "--status", "sent", *SIGNED), "--status"),
        (("queue", "requeue", "nonsense", *SIGNED), "not a valid UUID"),
        (("queue", "skip", *SIGNED), "DELIVERY"),
        (("queue", "skip", uuid4(), "--operator", "ann"), "--reason"),
        (("queue", "skip", uuid4(), "--operator", "ann", "--reason", " "), "must not be empty"),
        (("queue", "skip", uuid4(), "--operator", " ", "--reason", "x"), "must not be empty"),
        (("queue", "resolve", uuid4(), "perhaps", *SIGNED), "sent"),
        (
            ("queue", "resolve", uuid4(), "resend", "--provider-message-id", "1", *SIGNED),
            "can only be used with `sent`",
        ),
        (("queue", "errors", "--window", "soon"), "is not a duration"),
    ],
)
async def test_wrong_usage_changes_nothing(
    autopost: Autopost, tenant: Tenant, words: tuple[object, ...], said: str
) -> None:
    ran = await autopost(*words)

    assert ran.code == 2
    assert said in " ".join(ran.err.split())
    assert await tenant.count("events") == 0


async def test_a_database_that_is_away_is_named_without_its_password() -> None:
    ran = await Autopost("postgresql://ann:canary@127.0.0.1:1/x")("queue", "errors")

    assert ran.code == 1
    assert "check --database-url" in ran.err
    assert "canary" not in ran.err + ran.out


async def test_every_part_explains_itself(autopost: Autopost) -> None:
    for name in ("snapshot", "errors", "requeue", "skip", "release", "resolve"):
        ran = await autopost("queue", name, "--help")
        assert (ran.code, "--json" in ran.out) == (0, True)
        assert ("--dry-run" in ran.out) == (name not in ("snapshot", "errors"))
