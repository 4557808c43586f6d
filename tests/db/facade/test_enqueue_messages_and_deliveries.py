"""Enqueue: a post is stored once, and each routed channel gets one delivery or a reason why not."""

import json
from datetime import UTC, datetime, timedelta
from uuid import uuid4

from db.support.builders import Tenant, is_waiting, running, sent, transient
from db.support.verified import differences
from harness.eventually import eventually


async def test_a_post_is_stored_once_and_queued_for_each_channel(tenant):
    await tenant.channels(3)

    answer = await tenant.enqueue("hello", tags=["a"])

    assert (answer["new"], answer["routed"], answer["enqueued"], answer["deduped"]) == (True, 3, 3, 0)
    rows = await tenant.deliveries()
    assert [(row["status"], row["attempt"], row["trace_id"]) for row in rows] == [("queued", 0, "trace")] * 3
    assert await tenant.count("messages") == await tenant.count("renderings") == 1
    assert [event["what"] for event in await tenant.events()] == ["enqueue"] * 3


async def test_channels_that_show_the_same_plan_share_it_however_long_they_remember(tenant):
    for hours in (1, 2):
        await tenant.channel(dedup_ttl_hours=hours)
    post = await tenant.post("hello")
    changed = [{**rendering, "plan_hash": "another"} for rendering in post["renderings"]]

    first = await tenant.put(post)
    await tenant.drain()
    again = await tenant.put({**post, "renderings": changed}, now=datetime.now(UTC) + timedelta(hours=3))

    assert (first["enqueued"], again["enqueued"]) == (2, 2)
    shown = [row["rendering_id"] for row in await tenant.deliveries()]
    assert shown[0] == shown[1] != shown[2] == shown[3]
    assert await tenant.count("renderings") == 2


async def test_no_two_things_have_the_same_id(tenant):
    """Whoever asks by an id means one thing."""
    for _ in range(3):
        await tenant.channel(dedup_ttl_hours=0)
    posts = [await tenant.post() for _ in range(5)]
    query = """
        SELECT message_id AS id FROM messages
        UNION ALL SELECT rendering_id FROM renderings
        UNION ALL SELECT delivery_id FROM deliveries"""

    for _ in range(2):  # new, and seen before
        await tenant.put_batch(posts)
        await tenant.drain()

        ids = await tenant.db.fetch(query)
        assert len({row["id"] for row in ids}) == len(ids)


async def test_of_new_posts_and_seen_ones_in_a_batch_each_wakes_its_channel(tenant):
    channels = [await tenant.channel(route_filter={"include_any": [tag]}) for tag in ("a", "b")]
    await tenant.drain()
    seen = await tenant.post("seen", tags=["b"])
    await tenant.put(seen)
    await tenant.drain()
    await tenant.db.execute("UPDATE deliveries SET sent_at = now() - interval '8 days'")

    answers = await tenant.put_batch([await tenant.post("new", tags=["a"]), {**seen, "tags": ["c"]}])

    assert [(answer["new"], answer["enqueued"]) for answer in answers] == [(True, 1), (False, 1)]
    assert {claim["channel_id"] for claim in await tenant.claim()} == set(channels)
    [event] = await tenant.events("message_tag_mismatch")
    assert json.loads(event["meta"])["given"] == ["c"]


async def test_a_delivery_shows_the_text_it_will_send(tenant):
    await tenant.channel()

    await tenant.enqueue("hello")

    details = await tenant.db.fetchrow("SELECT rendered_text, plan_hash, render_meta FROM delivery_details")
    assert details is not None
    assert details["rendered_text"] == "hello"
    assert json.loads(details["render_meta"]) == {"plan_hash": details["plan_hash"]}


async def test_a_post_seen_again_keeps_what_was_seen_first(tenant):
    await tenant.channel()
    await tenant.enqueue("hello", source_ref="first", trace_id="first", tags=["a"])

    answer = await tenant.enqueue("hello", source_ref="second", trace_id="second", tags=["a"])

    message = await tenant.db.fetchrow("SELECT * FROM messages")
    assert message is not None
    assert (answer["new"], answer["deduped"], answer["enqueued"]) == (False, 1, 0)
    assert (message["source_ref"], message["first_seen_trace_id"], message["seen_count"]) == ("first", "first", 2)
    assert message["last_seen_at"] > message["created_at"]
    assert message["last_ingest_run_id"] != message["first_ingest_run_id"]


async def test_other_tags_are_told_and_do_not_change_the_message(tenant):
    await tenant.channel()
    await tenant.enqueue("hello", tags=["a"])

    await tenant.enqueue("hello", tags=["b"])

    [event] = await tenant.events("message_tag_mismatch")
    assert json.loads(event["meta"]) | {"kept": ["a"], "given": ["b"]} == json.loads(event["meta"])
    assert await tenant.db.fetchval("SELECT tags FROM messages") == ["a"]


async def test_tags_are_compared_in_the_form_that_ingest_gives_them(tenant):
    """A script may give them as people write them: they route, and they are those of the same post over HTTP."""
    await tenant.channel(route_filter={"include_any": ["news"]})
    first = await tenant.enqueue("hello", tags=["Sport ", "NEWS", "news"])

    again = await tenant.enqueue("hello", tags=["news", "sport"])

    assert (first["routed"], again["deduped"], "first_tags" in again) == (1, 1, False)
    assert await tenant.db.fetchval("SELECT tags FROM messages") == ["news", "sport"]
    assert await tenant.events("message_tag_mismatch") == []


async def test_without_a_rendering_nothing_is_written_and_the_profiles_are_named(tenant):
    await tenant.channels(2)
    await tenant.channel(settings={"disable_preview": True, "message_thread_id": 7})
    post = await tenant.post()

    answer = await tenant.put({**post, "renderings": post["renderings"][:1]})

    [missing] = answer["missing_profiles"]
    assert missing["profile_hash"] == post["renderings"][1]["profile_hash"]
    assert set(missing) >= {"platform", "send_mode", "settings", "template_body", "template_version"}
    assert "message_thread_id" not in missing["settings"]
    assert await tenant.count("messages") == await tenant.count("events") == 0


async def test_what_cannot_be_sent_fails_alone_and_at_once(tenant):
    bad = await tenant.channel(platform="max")
    good = await tenant.channel()
    post = await tenant.post()
    profile = (await tenant.state(bad))["profile_hash"]
    problem = {"profile_hash": profile, "problems": [{"code": "text_too_long"}]}
    others = [each for each in post["renderings"] if each["profile_hash"] != profile]

    answer = await tenant.put({**post, "renderings": [problem, *others]})

    by_channel = {row["channel_id"]: row for row in await tenant.deliveries()}
    error = json.loads(by_channel[bad]["last_error"])
    assert (answer["enqueued"], answer["validation_failed"]) == (1, 1)
    assert (by_channel[good]["status"], by_channel[bad]["status"]) == ("queued", "failed_permanent")
    assert (error["code"], error["scope"], error["category"]) == ("validation_failed", "delivery", "PERMANENT")
    assert error["problems"] == [{"code": "text_too_long"}]
    assert await tenant.history(by_channel[bad]["delivery_id"]) == ["validation_failed"]
    assert (await tenant.state(bad))["error_streak"] == 0


async def test_what_cannot_be_sent_is_told_once_a_day_for_one_reason_and_counted_each_time(tenant):
    await tenant.channels(2)

    async def put(code: str) -> dict[str, int]:
        post = await tenant.post("hello")
        problems = [{"code": code, "field": "text", "message": "no"}]
        post["renderings"] = [{"profile_hash": one["profile_hash"], "problems": problems} for one in post["renderings"]]
        return await tenant.put(post)

    async def told() -> tuple[int, int]:
        return len(await tenant.deliveries()), len(await tenant.events("validation_failed"))

    counted = [(await put("message_too_long"))["validation_failed"] for _ in range(3)]
    once = await told()
    other = (await put("markup_unsupported"))["validation_failed"], await told()
    differing = await differences(tenant.db, tenant.workspace)
    await tenant.db.execute("UPDATE deliveries SET created_at = created_at - interval '25 hours'")
    next_day = (await put("message_too_long"))["validation_failed"], await told()

    assert (counted, once) == ([2, 2, 2], (2, 2))
    assert (other, next_day) == ((2, (4, 4)), (2, (6, 6)))
    assert differing == []


async def test_what_could_not_be_sent_before_is_queued_once_it_can(tenant):
    await tenant.channel()
    post = await tenant.post("hello")
    bad = [{"profile_hash": one["profile_hash"], "problems": [{"code": "x"}]} for one in post["renderings"]]
    await tenant.put({**post, "renderings": bad})

    assert (await tenant.put(post))["enqueued"] == 1


async def test_the_same_content_waits_for_the_first_to_be_over(tenant):
    """Whatever the state of the first is, as long as it is in flight."""
    channel = await tenant.channel(dedup_ttl_hours=0)
    await tenant.enqueue("hello")
    claim = await tenant.claim_one()
    [while_sending] = [await tenant.enqueue("hello")]
    await tenant.commit(transient(claim))

    while_retrying = await tenant.enqueue("hello")

    assert while_sending["deduped"] == while_retrying["deduped"] == 1
    events = await tenant.events("dedup_suppressed")
    assert [event["channel_id"] for event in events] == [channel, channel]
    assert json.loads(events[0]["meta"])["twin"] == str(claim["delivery_id"])


async def test_the_same_content_is_suppressed_until_the_channel_forgets_it(tenant):
    await tenant.channel(dedup_ttl_hours=24)
    await tenant.enqueue("hello")
    await tenant.commit(sent(await tenant.claim_one()))
    sent_at = (await tenant.only_delivery())["sent_at"]

    within = await tenant.enqueue("hello", now=sent_at + timedelta(hours=24))
    after = await tenant.enqueue("hello", now=sent_at + timedelta(hours=24, microseconds=1))

    assert (within["enqueued"], within["deduped"]) == (0, 1)
    assert (after["enqueued"], after["deduped"]) == (1, 0)


async def test_a_channel_without_a_ttl_remembers_for_a_week(tenant):
    await tenant.channel(dedup_ttl_hours=None)
    await tenant.enqueue("hello")
    await tenant.commit(sent(await tenant.claim_one()))
    sent_at = (await tenant.only_delivery())["sent_at"]

    within = await tenant.enqueue("hello", now=sent_at + timedelta(hours=167))
    after = await tenant.enqueue("hello", now=sent_at + timedelta(hours=169))

    assert (within["deduped"], after["enqueued"]) == (1, 1)


async def test_what_failed_may_be_posted_again(tenant):
    await tenant.channel()
    await tenant.enqueue("hello")
    delivery = (await tenant.only_delivery())["delivery_id"]
    await tenant.set_delivery(delivery, "status = 'dead'")

    assert (await tenant.enqueue("hello"))["enqueued"] == 1


async def test_a_channel_that_comes_later_gets_what_others_already_had(tenant):
    await tenant.channel()
    await tenant.enqueue("hello")
    later = await tenant.channel()

    answer = await tenant.enqueue("hello")

    assert (answer["enqueued"], answer["deduped"]) == (1, 1)
    assert (await tenant.deliveries())[-1]["channel_id"] == later


async def test_a_suppressed_delivery_is_kept_where_the_audit_wants_it_and_prolongs_nothing(tenant):
    await tenant.channel(dedup_ttl_hours=1)
    await tenant.enqueue("hello")
    await tenant.commit(sent(await tenant.claim_one()))
    sent_at = (await tenant.only_delivery())["sent_at"]

    await tenant.enqueue("hello", now=sent_at + timedelta(minutes=59), audit_deduped=True)
    again = await tenant.enqueue("hello", now=sent_at + timedelta(minutes=61), audit_deduped=True)

    assert again["enqueued"] == 1
    suppressed = (await tenant.deliveries())[1]
    assert suppressed["status"] == "deduped"
    assert await tenant.history(suppressed["delivery_id"]) == ["dedup_suppressed"]


async def test_a_batch_puts_each_post_into_a_channel_once(tenant):
    await tenant.channel(dedup_ttl_hours=0)
    batch = str(uuid4())
    await tenant.enqueue("hello", batch_id=batch)
    await tenant.drain()

    again = await tenant.enqueue("hello", batch_id=batch)

    assert again["enqueued"] == 0
    assert await tenant.count("deliveries") == 1


async def test_a_scheduled_post_sleeps_until_its_time(tenant):
    channel = await tenant.channel()
    at = datetime.now(UTC) + timedelta(days=1)

    await tenant.enqueue(scheduled_for=at.isoformat())

    assert await tenant.claim() == []
    assert await tenant.next_due_at() == at == (await tenant.due(channel))["next_due_at"]
    assert len(await tenant.claim(now=at)) == 1
    tenant.now = at


async def test_a_batch_answers_in_the_order_asked_and_folds_twins(tenant):
    await tenant.channel()
    first, second = await tenant.post("b"), await tenant.post("a")

    answers = await tenant.put_batch([first, second, first])

    assert [answer["enqueued"] for answer in answers] == [1, 1, 0]
    assert answers[0]["message_id"] == answers[2]["message_id"] != answers[1]["message_id"]
    assert answers[2]["deduped"] == 1


async def test_a_channel_that_changes_while_a_post_waits_shows_what_was_compiled_for_it(database, tenant):
    """As if the post had come a moment earlier; it must not lose the channel."""
    first, changed = await tenant.channels(2)
    post = await tenant.post("hello")
    holder, waiter = await database.connect(), await database.connect()
    async with holder.transaction():
        await tenant.on(holder).put({**post, "routing": {"channels": [str(first)]}})
        twin = running(tenant.on(waiter).put({**post, "run_id": str(uuid4())}))
        await eventually(lambda: is_waiting(tenant.db, waiter.get_server_pid()))

        await tenant.set_channel(changed, "settings = '{\"disable_preview\": true}'")

    answer = await twin
    assert (answer["enqueued"], answer["deduped"]) == (1, 1)
    [delivery] = await tenant.db.fetch("SELECT * FROM deliveries WHERE channel_id = $1", changed)
    assert (delivery["status"], delivery["plan_hash"]) == ("queued", post["renderings"][0]["plan_hash"])


async def test_a_batch_with_a_post_that_lacks_a_rendering_takes_the_others(tenant):
    await tenant.channel()
    complete, lacking = await tenant.post("a"), await tenant.post("b")

    answers = await tenant.put_batch([{**lacking, "renderings": []}, complete])

    assert [profile["platform"] for profile in answers[0]["missing_profiles"]] == ["telegram"]
    assert answers[1]["enqueued"] == await tenant.count("messages") == await tenant.count("deliveries") == 1


async def test_twins_in_a_batch_reach_every_channel_that_one_of_them_names(tenant):
    """Sorted into rounds: the second is passed over only where the first went."""
    first, second, third = await tenant.channels(3)
    post = await tenant.post("hello")
    hints = ([first, second], [second, third], [first, second, third])

    answers = await tenant.put_batch([{**post, "routing": {"channels": list(map(str, hint))}} for hint in hints])

    assert [(answer["enqueued"], answer["deduped"]) for answer in answers] == [(2, 0), (1, 1), (0, 3)]
    assert [answer["new"] for answer in answers] == [True, False, False]
    assert await tenant.db.fetchval("SELECT seen_count FROM messages") == 3
    assert len(await tenant.claim()) == 3


async def test_a_rendering_that_no_channel_shows_is_not_stored(tenant):
    await tenant.channel()
    post = await tenant.post("hello")
    other = {**post["renderings"][0], "profile_hash": "of no channel", "plan_hash": "another"}

    await tenant.put({**post, "renderings": [other, *post["renderings"]]})

    [rendering] = await tenant.db.fetch("SELECT plan_hash FROM renderings")
    assert rendering["plan_hash"] == post["renderings"][0]["plan_hash"]


async def test_what_is_put_in_goes_behind_the_low_water_of_its_own_channel(tenant):
    other = await Tenant.create(tenant.db)
    channel = await tenant.channel()
    await other.channel(channel_id=channel)  # an id is one workspace's own
    for each in (tenant, other):
        insert = "INSERT INTO messages (workspace_id, content_hash, payload) VALUES ($1, 'hash', '{}')"
        await tenant.db.execute(insert, each.workspace)
    await tenant.db.execute(
        "UPDATE channel_due SET low_water = '2030-01-01' WHERE workspace_id = $1 AND channel_id = $2",
        *(tenant.workspace, channel),
    )

    await tenant.db.execute(
        """INSERT INTO deliveries (workspace_id, message_id, channel_id, hash_version, content_hash, created_at)
           SELECT workspace_id, message_id, $1, hash_version, content_hash, '2025-01-01' FROM messages""",
        channel,
    )

    rows = await tenant.db.fetch("SELECT workspace_id, sort_at FROM delivery_queue ORDER BY sort_at")
    assert [(row["workspace_id"], row["sort_at"].year) for row in rows] == [
        (other.workspace, 2025),
        (tenant.workspace, 2030),
    ]


async def test_ids_of_a_range_follow_each_other_however_it_was_drawn(tenant):
    drawn = ["00000000-0000-7000-8000-000000000000", "ffffffff-ffff-7fff-bfff-ffffffffffff"]

    ids = await tenant.db.fetch(
        "SELECT id_in(left(d, 24), id_start(d)) AS first, id_in(left(d, 24), id_start(d) + 1000000) AS last "
        "FROM unnest($1::text[]) AS d",
        drawn,
    )

    assert [row["last"].int - row["first"].int for row in ids] == [1_000_000] * 2
    assert [str(row["last"])[:24] for row in ids] == [each[:24] for each in drawn]
