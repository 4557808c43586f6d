"""Admit: the whole of a push in one transaction, so a request that was refused or failed leaves no trace of itself."""

import asyncio
import json
import time

import asyncpg
import pytest
from db.support.builders import Tenant, is_waiting, running
from db.support.senders import Sender, make_sender
from harness.eventually import eventually


@pytest.fixture
async def sender(tenant: Tenant) -> Sender:
    await tenant.channels(2)
    return await make_sender(tenant)


async def test_an_accepted_post_leaves_receipt_run_message_and_deliveries(tenant, sender):
    answer = await sender.push("hello", source_ref="42")

    receipt = await tenant.db.fetchrow("SELECT * FROM ingress_receipts")
    assert receipt is not None
    assert (answer["verdict"], answer["enqueued"], answer["new"]) == ("accepted", 2, True)
    assert (str(receipt["run_id"]), receipt["source_ref"]) == (answer["run_id"], "42")
    assert receipt["expires_at"] > receipt["received_at"]
    [stats] = await sender.runs()
    assert (stats["accepted"], stats["enqueued"], stats["deduped"]) == (1, 2, 0)
    assert await tenant.count("deliveries") == 2


async def test_a_source_ref_is_accepted_once_whatever_it_says(tenant, sender):
    first = await sender.push("hello", source_ref="42")

    again = await sender.push("something else", source_ref="42")

    assert (again["verdict"], again["of"], again["first_run_id"]) == ("duplicate", "source_ref", first["run_id"])
    assert await tenant.count("messages") == await tenant.count("ingress_receipts") == 1
    [event] = await tenant.events("ingress_dedup_dropped")
    assert (event["ended"], event["attempt"], json.loads(event["error"])["source_ref"]) == ("error", 0, "42")
    assert (await sender.runs())[-1] == {"dedup_dropped": 1}


async def test_the_event_names_the_first_that_was_dropped_whatever_was_sent_back_before_it(tenant, sender):
    await sender.push("hello", source_ref="42")
    incomplete = {**await tenant.post("new", source_ref="41"), "renderings": []}
    repeated = [await tenant.post(ref, source_ref=ref) for ref in ("42", "43")]

    answers = await sender.admit_all([incomplete, *repeated], ["1", "2", "3"])

    assert [answer["verdict"] for answer in answers] == ["missing_profiles", "duplicate", "accepted"]
    [event] = await tenant.events("ingress_dedup_dropped")
    assert json.loads(event["error"])["source_ref"] == "42"


async def test_an_endpoint_that_is_gone_takes_nothing_in(tenant, sender):
    await tenant.db.execute("DELETE FROM workspace_endpoints WHERE endpoint_id = $1", sender.endpoint)

    assert (await sender.push())["verdict"] == "endpoint_disabled"
    assert await tenant.count("messages") == await tenant.count("ingress_receipts") == 0


async def test_two_endpoints_may_use_the_same_source_ref(tenant, sender):
    other = await make_sender(tenant)

    verdicts = [(await each.push(source_ref="42"))["verdict"] for each in (sender, other)]

    assert verdicts == ["accepted", "accepted"]


async def test_without_a_source_ref_the_same_payload_is_dropped_within_the_window(tenant, sender):
    await sender.push("hello")

    again = await sender.push("hello")
    await tenant.db.execute("UPDATE ingress_receipts SET received_at = received_at - interval '11 seconds'")
    later = await sender.push("hello")

    assert (again["verdict"], again["of"]) == ("duplicate", "payload")
    assert (later["verdict"], later["deduped"]) == ("accepted", 2)
    assert len(await tenant.events("ingress_dedup_dropped")) == 1


async def test_with_a_source_ref_the_same_payload_is_another_request(tenant, sender):
    answers = [await sender.push("hello", source_ref=ref) for ref in ("1", "2")]

    assert [answer["verdict"] for answer in answers] == ["accepted", "accepted"]
    assert [answer["enqueued"] for answer in answers] == [2, 0]


@pytest.mark.parametrize("fields", [{"source_ref": "42"}, {}], ids=["by source_ref", "by payload"])
async def test_of_fifty_identical_pushes_one_is_accepted(tenant, sender, fields):
    post = await tenant.post("hello", **fields)

    answers = await asyncio.gather(*(sender.admit(post) for _ in range(50)))

    verdicts = [answer["verdict"] for answer in answers]
    assert (verdicts.count("accepted"), verdicts.count("duplicate")) == (1, 49)
    assert await tenant.count("messages") == await tenant.count("ingress_receipts") == 1
    assert await tenant.count("deliveries") == 2


@pytest.mark.parametrize("fields", [{"source_ref": "42"}, {}], ids=["by source_ref", "by payload"])
async def test_a_repetition_waits_for_the_first_and_is_dropped_when_that_succeeds(database, tenant, sender, fields):
    first, second = await database.connect(), await database.connect()
    post = await tenant.post("hello", **fields)
    async with first.transaction():
        await sender.on(first).admit(post)
        repetition = running(sender.on(second).admit(post))
        await eventually(lambda: is_waiting(tenant.db, second.get_server_pid()))

    assert (await repetition)["verdict"] == "duplicate"


async def test_twelve_twins_with_refs_of_their_own_reach_each_channel_once(tenant, sender):
    post = await tenant.post("hello")

    answers = await asyncio.gather(*(sender.admit({**post, "source_ref": str(n)}) for n in range(12)))

    assert [answer["verdict"] for answer in answers] == ["accepted"] * 12
    assert sum(answer["enqueued"] for answer in answers) == await tenant.count("deliveries") == 2


async def test_a_request_that_failed_leaves_nothing_and_its_repetition_is_accepted(database, tenant, sender):
    connection = await database.connect()
    failing = connection.transaction()
    await failing.start()
    await sender.on(connection).push("hello", source_ref="42")

    await failing.rollback()

    assert await tenant.count("ingress_receipts") == await tenant.count("ingest_runs") == 0
    assert (await sender.push("hello", source_ref="42"))["verdict"] == "accepted"


async def test_a_repetition_waits_for_the_first_and_is_accepted_when_that_fails(database, tenant, sender):
    first, second = await database.connect(), await database.connect()
    failing = first.transaction()
    await failing.start()
    post = await tenant.post("hello", source_ref="42")
    await sender.on(first).admit(post)
    repetition = running(sender.on(second).admit(post))
    await eventually(lambda: is_waiting(tenant.db, second.get_server_pid()))

    await failing.rollback()

    assert (await repetition)["verdict"] == "accepted"


@pytest.mark.parametrize(("window", "days"), [(10, 3), (10 * 24 * 3600, 10)])
async def test_a_receipt_lives_as_long_as_the_window_that_it_is_needed_for(tenant, window, days):
    await tenant.channel()
    sender = await make_sender(tenant, window=window)
    await sender.push()

    assert await tenant.db.fetchval(
        "SELECT date_trunc('minute', expires_at - received_at) = make_interval(days => $1) FROM ingress_receipts", days
    )


async def test_a_disabled_endpoint_takes_nothing_in(tenant, sender):
    await tenant.db.execute("UPDATE workspace_endpoints SET enabled = false")

    assert await sender.push("a") == {"verdict": "endpoint_disabled"}
    for table in ("ingress_receipts", "ingest_runs", "messages", "events", "ingress_gates"):
        assert await tenant.count(table) == 0


async def test_a_broken_post_leaves_no_receipt(tenant, sender):
    with pytest.raises(asyncpg.PostgresError):
        await sender.push("hello", source_ref="42", scheduled_for="never")

    assert (await sender.push("hello", source_ref="42"))["verdict"] == "accepted"


async def test_missing_profiles_leave_nothing(tenant, sender):
    answer = await sender.push("hello", source_ref="42", renderings=[])

    assert answer["verdict"] == "missing_profiles"
    assert len(answer["missing_profiles"]) == 1
    for table in ("ingress_receipts", "ingest_runs", "messages", "events", "ingress_gates"):
        assert await tenant.count(table) == 0


@pytest.mark.parametrize("status", ["paused", "disabled"])
async def test_a_workspace_that_is_not_active_takes_nothing_in(tenant, sender, status):
    await tenant.db.execute("UPDATE workspaces SET status = $1", status)

    answer = await sender.push("hello", source_ref="42")
    await tenant.db.execute("UPDATE workspaces SET status = 'active'")

    assert answer == {"verdict": f"workspace_{status}"}
    assert (await sender.push("hello", source_ref="42"))["verdict"] == "accepted"


async def test_a_burst_over_the_rate_is_refused_with_a_wait(tenant):
    await tenant.channel()
    sender = await make_sender(tenant, rate=5)
    posts = [await tenant.post(source_ref=str(n)) for n in range(40)]

    began = time.monotonic()
    answers = [await sender.admit(post) for post in posts]
    took = time.monotonic() - began

    refused = [answer for answer in answers if answer["verdict"] == "rate_limited"]
    accepted = len(answers) - len(refused)
    assert 5 <= accepted <= 5 * (1 + took) + 1
    assert all(0 < answer["retry_after_ms"] <= 200 for answer in refused)
    assert await tenant.count("ingress_receipts") == accepted
    assert len(refused) >= len(await tenant.events("ingress_rate_limited")) >= 1


async def test_a_refused_request_is_accepted_when_it_comes_again(tenant):
    await tenant.channel()
    sender = await make_sender(tenant, rate=0.01)
    await sender.push(source_ref="1")
    refused = await sender.push(source_ref="2")

    await tenant.db.execute("UPDATE ingress_gates SET full_until = now() - interval '1 second'")

    assert refused["verdict"] == "rate_limited"
    assert (await sender.push(source_ref="2"))["verdict"] == "accepted"


async def test_a_post_that_is_compiled_and_comes_again_pays_once(tenant):
    await tenant.channel()
    sender = await make_sender(tenant, rate=0.01)
    post = await tenant.post("hello")
    asked = await sender.admit({**post, "renderings": []})

    verdicts = [(await sender.admit(post, past_gate=past))["verdict"] for past in (False, True)]

    assert asked["verdict"] == "missing_profiles"
    assert verdicts == ["rate_limited", "accepted"]


@pytest.mark.parametrize("rate", [None, 0])
async def test_no_rate_means_no_gate(tenant, rate):
    await tenant.channel()
    sender = await make_sender(tenant, rate=rate)

    answers = [await sender.push() for _ in range(20)]

    assert {answer["verdict"] for answer in answers} == {"accepted"}
    assert await tenant.count("ingress_gates") == 0
