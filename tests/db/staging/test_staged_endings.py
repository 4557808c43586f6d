"""A staged post ends once: in the queue, or visibly given up."""

import asyncio
import json
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

from db.support.builders import Tenant, is_waiting, running
from db.support.staging import GONE, Staging
from db.support.why_answers import ask
from harness.eventually import eventually


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
    for base in (2, 4, 8, 16):
        await tenant.db.execute("UPDATE staged_posts SET next_attempt_at = now()")
        post, began = await staging.leased(), datetime.now(UTC)
        assert await staging.fail(post, attempts=5) == "staged"
        due, ended = (await staging.row())["next_attempt_at"], datetime.now(UTC)
        assert began + 0.79 * timedelta(seconds=base) < due < ended + 1.21 * timedelta(seconds=base)

    assert await staging.lease() == []
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
        await Staging(tenant.on(failing), staging.sender).fail(post)
        repetition = running(Staging(tenant.on(repeating), staging.sender.on(repeating)).stage(source_ref="42"))
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
    query = "SELECT post_id, run_id FROM find_post($1, $2)"

    told = await tenant.db.fetchrow(query, tenant.workspace, answer["post_id"])
    strange = await tenant.db.fetchrow(query, other.workspace, answer["post_id"])

    assert tuple(told) == (UUID(answer["post_id"]), UUID(answer["run_id"]))
    assert strange is None


async def test_an_unknown_post_is_nobodys(tenant):
    verdict = await tenant.db.fetchval(
        "SELECT fail_staged_post($1, $2, $3, '{}', 0)", tenant.workspace, uuid4(), uuid4()
    )

    assert verdict == "stale"


async def test_a_staged_post_that_no_channel_takes_is_not_kept_and_leaves_its_event(tenant, staging):
    await tenant.db.execute("""UPDATE channels SET route_filter = '{"include_any": ["news"]}'""")

    answer = await staging.stage(source_ref="42", tags=["other"])

    assert (answer["verdict"], answer["message_id"], answer["routed"]) == ("refused", None, 0)
    assert await tenant.count("staged_posts") == await tenant.count("ingress_receipts") == 0
    [event] = await tenant.events("enqueue")
    assert json.loads(event["error"])["code"] == "no_channel"
    assert (await staging.run())["finished_at"]
    assert (await staging.stage(source_ref="42", tags=["news"]))["verdict"] == "staged"


async def test_a_staged_post_that_no_channel_takes_any_more_fails_and_may_be_sent_again(tenant, staging):
    await staging.stage(source_ref="42")
    post = await staging.leased()
    await tenant.db.execute("UPDATE channels SET enabled = false")

    finished, again = await staging.finish(post), await staging.finish(post)

    row, run = await staging.row(), await staging.run()
    assert finished["verdict"] == again["verdict"] == "failed"
    assert (row["status"], json.loads(row["last_error"])["code"], row["message_id"]) == ("failed", "no_channel", None)
    assert (json.loads(run["stats_json"])["reason"], run["finished_at"] is not None) == ("no_channel", True)
    [told] = await ask(tenant, post["post_id"])
    assert [(event["action"], event["code"]) for event in told["history"]] == [("enqueue", "no_channel")]
    assert await tenant.count("messages") == await tenant.count("ingress_receipts") == 0
    await tenant.db.execute("UPDATE channels SET enabled = true")
    assert (await staging.stage(source_ref="42"))["verdict"] == "staged"


async def test_a_staged_post_goes_by_the_tags_that_its_content_was_first_seen_with(tenant, staging):
    await tenant.db.execute("""UPDATE channels SET route_filter = '{"include_any": ["news"]}'""")
    await tenant.enqueue("hello", tags=["news"])
    await staging.stage(tags=["news", "sale"])
    post = await staging.leased()

    finished = await staging.finish(post, "hello", tags=["news", "sale"])

    assert (finished["verdict"], finished["deduped"], finished["first_tags"]) == ("enqueued", 2, ["news"])
    stats = json.loads((await staging.run())["stats_json"])
    assert (stats["first_tags"], stats["tags"]) == (["news"], ["news", "sale"])
