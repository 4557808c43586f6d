"""Staged posts: taken in like any other, leased to one worker at a time, ended once."""

import asyncio
import json
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import pytest
from db.builders import Tenant, is_waiting, running
from db.test_admit_posts import Door, open_door
from harness.eventually import eventually

LEASE = timedelta(seconds=60)
REQUEST = {"media": [{"type": "image", "url": "https://a.example/a.png"}]}
GONE = {"code": "http_404", "field": "media[0].url"}


class Staging:
    """What a worker asks of the database."""

    def __init__(self, tenant: Tenant, door: Door) -> None:
        self.tenant, self.door = tenant, door

    async def stage(self, text: str | None = None, **fields: Any) -> dict[str, Any]:
        return await self.door.push(text, request=REQUEST, source={"kind": "push"}, renderings=[], **fields)

    async def lease(self, limit: int = 10, per_workspace: int = 10, db: Any = None) -> list[asyncpg.Record]:
        query = "SELECT * FROM lease_staged_posts($1, $2, $3)"
        return list(await (db or self.tenant.db).fetch(query, limit, per_workspace, LEASE))

    async def leased(self) -> asyncpg.Record:
        [post] = await self.lease()
        return post

    async def finish(self, post: asyncpg.Record, text: str = "hello", **fields: Any) -> dict[str, Any]:
        content = await self.tenant.post(text, **fields)
        query = "SELECT finish_staged_post($1, $2, $3, $4)"
        answer: dict[str, Any] = json.loads(await self.tenant.db.fetchval(query, *fence(post), json.dumps(content)))
        return answer

    async def fail(self, post: asyncpg.Record, attempts: int = 0, wait: int | None = None) -> str:
        query = "SELECT fail_staged_post($1, $2, $3, $4, $5, $6)"
        verdict: str = await self.tenant.db.fetchval(query, *fence(post), json.dumps(GONE), attempts, wait)
        return verdict

    async def take(self, post: asyncpg.Record, url_hash: str = "a.png") -> str:
        query = "SELECT verdict FROM take_media_fetch($1, $2, $3, $4)"
        verdict: str = await self.tenant.db.fetchval(query, *fence(post), url_hash)
        return verdict

    async def note(self, post: asyncpg.Record, blob_ref: str) -> bool:
        query = "SELECT note_media_put($1, 'a.png', $2, $3)"
        noted: bool = await self.tenant.db.fetchval(query, post["workspace_id"], post["lease_token"], blob_ref)
        return noted

    async def fetched(self, post: asyncpg.Record, blob_ref: str) -> None:
        query = "SELECT finish_media_fetch($1, 'a.png', $2, $3, 's3://b/k', 'x', 'image/png', 3, 1, 1, 'a.png')"
        await self.tenant.db.execute(query, post["workspace_id"], post["lease_token"], blob_ref)

    async def puts(self) -> list[str]:
        found: list[str] = await self.tenant.db.fetchval("SELECT puts FROM media_fetches WHERE url_hash = 'a.png'")
        return found

    async def row(self) -> asyncpg.Record:
        [row] = await self.tenant.db.fetch("SELECT * FROM staged_posts WHERE workspace_id = $1", self.tenant.workspace)
        return row

    async def run(self) -> asyncpg.Record:
        [row] = await self.tenant.db.fetch("SELECT * FROM ingest_runs WHERE workspace_id = $1", self.tenant.workspace)
        return row

    async def let_leases_end(self) -> None:
        await self.tenant.db.execute(
            "UPDATE staged_posts SET lease_until = now() - interval '1 s', next_attempt_at = now() - interval '1 s' "
            "WHERE status = 'fetching'"
        )


def fence(post: asyncpg.Record) -> tuple[UUID, UUID, UUID]:
    return post["workspace_id"], post["post_id"], post["lease_token"]


@pytest.fixture
async def staging(tenant: Tenant) -> Staging:
    await tenant.channels(2)
    return Staging(tenant, await open_door(tenant))


async def test_a_staged_post_leaves_receipt_and_run_and_nothing_in_the_queue(tenant, staging):
    answer = await staging.stage("hello", source_ref="42", traceparent="00-aa-bb-01")

    row, run = await staging.row(), await staging.run()
    assert (answer["verdict"], answer["post_id"]) == ("staged", str(row["post_id"]))
    assert (row["status"], json.loads(row["request"]), row["traceparent"]) == ("staged", REQUEST, "00-aa-bb-01")
    assert (str(row["run_id"]), run["run_id"], run["finished_at"]) == (answer["run_id"], row["run_id"], None)
    assert row["receipt_id"] == await tenant.db.fetchval("SELECT receipt_id FROM ingress_receipts")
    assert await tenant.count("messages") == await tenant.count("deliveries") == await tenant.count("events") == 0


async def test_what_was_staged_before_is_a_duplicate(tenant, staging):
    await staging.stage("hello", source_ref="42")

    again = await staging.stage("other", source_ref="42")

    assert (again["verdict"], again["of"]) == ("duplicate", "source_ref")
    assert await tenant.count("staged_posts") == 1


@pytest.mark.parametrize("fields", [{"source_ref": "42"}, {}], ids=["by source_ref", "by payload"])
async def test_of_thirty_identical_requests_one_is_staged(tenant, staging, fields):
    answers = await asyncio.gather(*(staging.stage("hello", **fields) for _ in range(30)))

    verdicts = [answer["verdict"] for answer in answers]
    assert (verdicts.count("staged"), verdicts.count("duplicate")) == (1, 29)
    assert await tenant.count("staged_posts") == await tenant.count("ingress_receipts") == 1


async def test_a_staged_post_passes_the_gate_like_any_other(tenant):
    staging = Staging(tenant, await open_door(tenant, rate=1))

    verdicts = [(await staging.stage())["verdict"] for _ in range(2)]

    assert verdicts == ["staged", "rate_limited"]
    assert await tenant.count("staged_posts") == 1


async def test_a_staged_post_that_failed_on_the_way_leaves_nothing(database, tenant, staging):
    connection = await database.connect()
    failing = connection.transaction()
    await failing.start()
    await Staging(tenant.on(connection), staging.door.on(connection)).stage("hello", source_ref="42")

    await failing.rollback()

    for table in ("staged_posts", "ingress_receipts", "ingest_runs"):
        assert await tenant.count(table) == 0
    assert (await staging.stage("hello", source_ref="42"))["verdict"] == "staged"


async def test_concurrent_workers_lease_each_post_once(tenant, staging):
    for _ in range(20):
        await staging.stage()

    leased = await asyncio.gather(*(staging.lease(limit=3, per_workspace=100) for _ in range(10)))

    posts = [post["post_id"] for batch in leased for post in batch]
    assert len(posts) == len(set(posts)) == 20
    assert len({post["lease_token"] for batch in leased for post in batch}) == 20


async def test_a_workspace_never_has_more_out_than_its_budget_whoever_asks(tenant, staging):
    for _ in range(20):
        await staging.stage()

    leased = await asyncio.gather(*(staging.lease(limit=5, per_workspace=4) for _ in range(10)))

    assert sum(map(len, leased)) == 4


async def test_a_budget_that_is_being_spent_is_not_spent_twice(database, tenant, staging):
    for _ in range(8):
        await staging.stage()
    first, second = await database.connect(), await database.connect()
    async with first.transaction():
        spent = await staging.lease(per_workspace=4, db=first)
        asking = running(staging.lease(per_workspace=4, db=second))
        await eventually(lambda: is_waiting(tenant.db, second.get_server_pid()))

    assert (len(spent), await asking) == (4, [])


async def test_a_long_line_of_one_tenant_keeps_nobody_waiting(database, tenant, staging):
    other = await Tenant.create(database.pool)
    small = Staging(other, await open_door(other))
    for _ in range(30):
        await staging.stage()
    await small.stage()

    leased = await staging.lease(limit=4, per_workspace=4)

    assert [post["workspace_id"] for post in leased].count(other.workspace) == 1
    assert len(leased) == 4


async def test_a_workspace_with_posts_out_comes_after_one_that_has_none(database, tenant, staging):
    other = await Tenant.create(database.pool)
    small = Staging(other, await open_door(other))
    for _ in range(10):
        await staging.stage()
    await staging.lease(limit=2)
    await small.stage()

    [next_one] = await staging.lease(limit=1)

    assert next_one["workspace_id"] == other.workspace


@pytest.mark.parametrize("status", ["paused", "disabled"])
async def test_a_workspace_that_is_not_active_rests_and_loses_nothing(tenant, staging, status):
    await staging.stage()
    await tenant.db.execute("UPDATE workspaces SET status = $1", status)

    resting = await staging.lease()
    await tenant.db.execute("UPDATE workspaces SET status = 'active'")

    assert resting == []
    assert len(await staging.lease()) == 1


async def test_what_is_leased_is_leased_again_only_when_the_lease_is_over(staging):
    await staging.stage()
    first = await staging.leased()

    meanwhile = await staging.lease()
    await staging.let_leases_end()
    second = await staging.leased()

    assert meanwhile == []
    assert (first["post_id"], first["attempt"], second["attempt"]) == (second["post_id"], 1, 2)
    assert first["lease_token"] != second["lease_token"]


async def test_a_renewed_lease_lasts(tenant, staging):
    await staging.stage()
    post = await staging.leased()
    await staging.let_leases_end()

    renewed = await tenant.db.fetchval("SELECT renew_staged_post($1, $2, $3, $4)", *fence(post), LEASE)

    assert renewed is True
    assert await staging.lease() == []


async def test_a_lease_that_passed_on_is_not_renewed_nor_given_back(tenant, staging):
    await staging.stage()
    old = await staging.leased()
    await staging.let_leases_end()
    new = await staging.leased()

    renewed = await tenant.db.fetchval("SELECT renew_staged_post($1, $2, $3, $4)", *fence(old), LEASE)
    await tenant.db.execute("SELECT release_staged_post($1, $2, $3)", *fence(old))

    row = await staging.row()
    assert renewed is False
    assert (row["status"], row["lease_token"], row["attempt"]) == ("fetching", new["lease_token"], 2)


async def test_a_lease_given_back_is_due_at_once_and_counts_no_attempt(tenant, staging):
    await staging.stage()
    post = await staging.leased()

    await tenant.db.execute("SELECT release_staged_post($1, $2, $3)", *fence(post))

    assert (await staging.row())["attempt"] == 0
    assert (await staging.leased())["attempt"] == 1


async def test_a_finished_post_is_in_the_queue_under_its_own_run_and_trace(tenant, staging):
    answer = await staging.stage(source_ref="42", trace_id="its own", traceparent="00-aa-bb-01")
    post = await staging.leased()

    finished = await staging.finish(post, trace_id="the worker's", source={"kind": "worker"})

    row, run = await staging.row(), await staging.run()
    assert (finished["verdict"], finished["enqueued"]) == ("enqueued", 2)
    assert (row["status"], str(row["message_id"])) == ("enqueued", finished["message_id"])
    assert row["finished_at"] and run["finished_at"]
    assert json.loads(run["stats_json"]).items() >= {"accepted": 1, "staged": 1, "enqueued": 2}.items()
    traces = {(each["trace_id"], each["traceparent"]) for each in await tenant.deliveries()}
    assert traces == {("its own", "00-aa-bb-01")}
    assert await tenant.db.fetchval("SELECT first_ingest_run_id FROM messages") == UUID(answer["run_id"])
    assert json.loads(await tenant.db.fetchval("SELECT source FROM messages")) == {"kind": "push"}
    assert await staging.lease() == []


async def test_finishing_twice_enqueues_once(tenant, staging):
    await staging.stage()
    post = await staging.leased()

    first, again = await staging.finish(post), await staging.finish(post)

    assert (again["verdict"], again["message_id"]) == ("enqueued", first["message_id"])
    assert await tenant.count("deliveries") == 2
    assert await tenant.events("stale_commit") == []


async def test_of_concurrent_finishes_under_one_token_one_enqueues(tenant, staging):
    await staging.stage()
    post = await staging.leased()

    await asyncio.gather(*(staging.finish(post, f"text {number}") for number in range(10)))

    assert await tenant.count("messages") == 1


async def test_a_worker_that_lost_its_lease_changes_nothing_and_it_is_told(tenant, staging):
    await staging.stage(source_ref="42")
    old = await staging.leased()
    await staging.let_leases_end()
    new = await staging.leased()

    verdicts = ((await staging.finish(old))["verdict"], await staging.fail(old))

    assert verdicts == ("stale", "stale")
    assert await tenant.count("messages") == 0
    assert (await staging.row())["lease_token"] == new["lease_token"]
    events = await tenant.events("stale_commit")
    assert [json.loads(event["meta"])["post_id"] for event in events] == [str(old["post_id"])] * 2


async def test_missing_profiles_leave_the_post_leased(tenant, staging):
    await staging.stage()
    post = await staging.leased()

    asked = await staging.finish(post, renderings=[])

    assert (asked["verdict"], len(asked["missing_profiles"])) == ("missing_profiles", 1)
    assert (await staging.row())["status"] == "fetching"
    assert (await staging.finish(post))["verdict"] == "enqueued"


async def test_a_failure_that_may_pass_is_tried_again_after_the_wait_of_the_policy(tenant, staging):
    await staging.stage(source_ref="42")
    waits = []
    for _ in range(4):
        await tenant.db.execute("UPDATE staged_posts SET next_attempt_at = now()")
        assert await staging.fail(await staging.leased(), attempts=5) == "staged"
        waits.append(((await staging.row())["next_attempt_at"] - datetime.now(UTC)).total_seconds())

    assert await staging.lease() == []
    for wait, base in zip(waits, (2, 4, 8, 16), strict=True):
        assert 0.7 * base < wait < 1.3 * base
    assert await tenant.events() == []
    assert await tenant.count("ingress_receipts") == 1
    assert (await staging.run())["finished_at"] is None


async def test_a_server_that_says_when_is_asked_then(tenant, staging):
    await staging.stage()

    await staging.fail(await staging.leased(), attempts=5, wait=90_000)

    wait = ((await staging.row())["next_attempt_at"] - datetime.now(UTC)).total_seconds()
    assert 85 < wait < 110


async def test_the_last_attempt_gives_up_visibly_and_the_sender_may_try_again(tenant, staging):
    answer = await staging.stage(source_ref="42")
    for _ in range(4):
        await staging.fail(await staging.leased(), attempts=5)
        await tenant.db.execute("UPDATE staged_posts SET next_attempt_at = now()")

    verdict = await staging.fail(await staging.leased(), attempts=5)

    row, run = await staging.row(), await staging.run()
    assert (verdict, row["status"], json.loads(row["last_error"])) == ("failed", "failed", GONE)
    [event] = await tenant.events()
    assert (event["what"], event["ended"], event["attempt"]) == ("media_failed", "error", 5)
    assert json.loads(event["error"]) == GONE
    meta = json.loads(event["meta"])
    assert (meta["post_id"], meta["run_id"], meta["trace_id"]) == (answer["post_id"], answer["run_id"], "trace")
    assert run["finished_at"]
    told = {"accepted": 1, "staged": 1, "media_failed": 1, "reason": "http_404"}
    assert json.loads(run["stats_json"]) == told
    assert (await staging.stage(source_ref="42"))["verdict"] == "staged"


async def test_a_failure_that_is_final_needs_no_second_attempt(tenant, staging):
    await staging.stage()

    assert await staging.fail(await staging.leased()) == "failed"
    assert await staging.lease() == []


async def test_giving_up_takes_back_no_receipt_but_its_own(tenant, staging):
    await staging.stage(source_ref="1")
    post = await staging.leased()
    await staging.stage(source_ref="2")

    await staging.fail(post)

    refs = await tenant.db.fetch("SELECT source_ref FROM ingress_receipts")
    assert [row["source_ref"] for row in refs] == ["2"]


async def test_a_repetition_waits_for_the_failure_of_the_first_and_is_staged(database, tenant, staging):
    await staging.stage(source_ref="42")
    post = await staging.leased()
    failing, repeating = await database.connect(), await database.connect()
    async with failing.transaction():
        await Staging(tenant.on(failing), staging.door).fail(post)
        repetition = running(Staging(tenant.on(repeating), staging.door.on(repeating)).stage(source_ref="42"))
        await eventually(lambda: is_waiting(tenant.db, repeating.get_server_pid()))

    assert (await repetition)["verdict"] == "staged"


async def test_a_post_of_a_pull_adds_to_its_run_and_does_not_end_it(tenant, staging):
    await staging.stage()
    await tenant.db.execute("UPDATE ingest_runs SET kind = 'pull', stats_json = '{\"enqueued\": 40, \"sources\": {}}'")

    await staging.finish(await staging.leased())

    run = await staging.run()
    assert run["finished_at"] is None
    assert json.loads(run["stats_json"]).items() >= {"enqueued": 42, "sources": {}}.items()


async def test_what_became_of_a_post_is_told_to_its_own_workspace_only(database, tenant, staging):
    answer = await staging.stage()
    other = await Tenant.create(database.pool)
    query = "SELECT status, run_id FROM read_staged_post($1, $2)"

    told = await tenant.db.fetchrow(query, tenant.workspace, UUID(answer["post_id"]))
    strange = await tenant.db.fetchrow(query, other.workspace, UUID(answer["post_id"]))

    assert tuple(told) == ("staged", UUID(answer["run_id"]))
    assert strange is None


async def test_a_url_is_fetched_by_one_post_at_a_time(staging):
    for _ in range(6):
        await staging.stage()
    posts = await staging.lease()

    verdicts = await asyncio.gather(*(staging.take(post) for post in posts))

    assert sorted(verdicts) == ["busy"] * 5 + ["ours"]


async def test_a_fetch_is_free_again_when_its_post_has_ended_however_that_was(tenant, staging):
    await staging.stage()
    await staging.stage()
    one, two = await staging.lease()
    await staging.take(one)
    meanwhile = await staging.take(two)

    await staging.fail(one, attempts=5)

    assert (meanwhile, await staging.take(two)) == ("busy", "ours")


async def test_a_fetch_is_free_again_when_the_lease_of_a_dead_worker_is_over(tenant, staging):
    await staging.stage()
    dead = await staging.leased()
    await staging.take(dead)
    await staging.stage()
    post = await staging.leased()

    meanwhile = await staging.take(post)
    await staging.tenant.db.execute(
        "UPDATE staged_posts SET lease_until = now() - interval '1 s' WHERE post_id = $1", dead["post_id"]
    )

    assert (meanwhile, await staging.take(post)) == ("busy", "ours")


async def test_what_was_fetched_meanwhile_is_held_for_those_who_waited_and_not_for_those_who_came_later(
    tenant, staging
):
    await staging.stage()
    await staging.stage()
    one, waiting = await staging.lease()
    await staging.take(one)
    await staging.fetched(one, "sha256:cat")
    await staging.stage()

    [later] = await staging.lease()

    assert [await staging.take(post) for post in (one, waiting, later)] == ["held", "held", "ours"]


async def test_a_worker_that_lost_its_lease_fetches_and_stores_nothing(staging):
    await staging.stage()
    old = await staging.leased()
    await staging.take(old)
    await staging.let_leases_end()
    new = await staging.leased()
    await staging.take(new)

    assert await staging.take(old) == "stale"
    assert await staging.note(old, "sha256:cat") is False
    assert await staging.note(new, "sha256:cat") is True


async def test_an_object_that_may_exist_is_accounted_for_until_it_is_an_origin(tenant, staging):
    await staging.stage()
    post = await staging.leased()
    await staging.take(post)
    await staging.note(post, "sha256:cat")  # and then the worker died, and the picture changed
    await staging.let_leases_end()
    again = await staging.leased()
    await staging.take(again)

    await staging.note(again, "sha256:dog")
    before = await staging.puts()
    await staging.fetched(again, "sha256:dog")

    assert before == ["sha256:cat", "sha256:dog"]
    assert await staging.puts() == ["sha256:cat"]
    assert await tenant.db.fetchval("SELECT array_agg(blob_ref) FROM media_origin") == ["sha256:dog"]


async def test_fetches_of_long_ago_are_forgotten_unless_they_leave_something_to_account_for(tenant, staging):
    await tenant.db.execute(
        "INSERT INTO media_fetches (workspace_id, url_hash, puts, started_at) "
        "SELECT $1, 'old ' || n, CASE WHEN n = 1 THEN '{sha256:cat}' ELSE '{}' END::text[], now() - interval '2 days' "
        "FROM generate_series(1, 5) AS n",
        tenant.workspace,
    )
    await staging.stage()
    post = await staging.leased()
    await staging.take(post)

    await staging.fetched(post, "sha256:dog")

    left = await tenant.db.fetch("SELECT url_hash FROM media_fetches ORDER BY 1")
    assert [row["url_hash"] for row in left] == ["a.png", "old 1"]


async def test_leasing_costs_the_same_however_long_one_line_is(tenant, staging):
    """What is read follows what is handed out: 20,000 waiting posts of a tenant are not looked at."""
    await staging.stage()
    await tenant.db.execute(
        "INSERT INTO staged_posts (workspace_id, endpoint_id, run_id, request) "
        "SELECT workspace_id, endpoint_id, run_id, '{}' FROM staged_posts, generate_series(1, 20000)"
    )
    await tenant.db.execute("ANALYZE staged_posts")

    async with tenant.db.acquire() as connection:
        before = await _read(connection)
        leased = await staging.lease(limit=4, per_workspace=4, db=connection)
        after = await _read(connection)

    assert len(leased) == 4
    assert after - before < 1000


async def _read(connection: Any) -> int:
    await connection.execute("SELECT pg_stat_force_next_flush()")
    rows: int = await connection.fetchval(
        "SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_user_tables WHERE relname = 'staged_posts'"
    )
    return rows


async def test_an_unknown_post_is_nobodys(tenant):
    verdict = await tenant.db.fetchval(
        "SELECT fail_staged_post($1, $2, $3, '{}', 0)", tenant.workspace, uuid4(), uuid4()
    )

    assert verdict == "stale"
