"""Whatever id one has in hand leads to the post."""

from uuid import UUID, uuid4

from autopost_cli.why.text import lines
from db.support.builders import Tenant
from db.support.senders import make_sender
from db.support.why_answers import ask, ask_one


async def new_run(tenant: Tenant) -> tuple[UUID, str]:
    trace = uuid4().hex
    query = "INSERT INTO ingest_runs (workspace_id, kind, trace_id) VALUES ($1, 'push', $2) RETURNING run_id"
    return await tenant.db.fetchval(query, tenant.workspace, trace), trace


async def test_a_run_a_trace_and_a_source_ref_stand_for_their_posts(tenant: Tenant) -> None:
    """Also when another run had brought its content before."""
    await tenant.channel()
    run, trace = await new_run(tenant)
    message = (await tenant.enqueue("hello", run_id=str(run), trace_id=trace, source_ref="item 42"))["message_id"]
    again, _ = await new_run(tenant)
    await tenant.enqueue("hello", run_id=str(again))
    await tenant.db.execute("UPDATE ingest_runs SET finished_at = clock_timestamp()")

    told = {name: (await ask_one(tenant, name))["message_id"] for name in (run, trace, "item 42", again)}

    assert told == {run: message, trace: message, "item 42": message, again: message}


async def test_a_run_that_brought_nothing_is_shown_itself(tenant: Tenant) -> None:
    run, trace = await new_run(tenant)

    told = await ask_one(tenant, trace)

    assert (told["kind"], told["run_id"], told["run_kind"]) == ("run", str(run), "push")


async def test_a_run_whose_post_no_channel_took_says_so(tenant: Tenant) -> None:
    await tenant.channel(route_filter={"include_any": ["news"]})
    sender = await make_sender(tenant)
    answer = await sender.push("hello", tags=["nwes"], source_ref="item 42", trace_id=uuid4().hex)

    told = await ask_one(tenant, answer["run_id"])

    assert (told["kind"], told["stats"]["routed"]) == ("run", 0)
    [post] = told["unrouted"]
    assert (post["code"], post["tags"], post["source_ref"]) == ("no_channel", "nwes", "item 42")
    assert "no enabled channel takes" in "\n".join(lines({"at": told["finished_at"], "found": [told]}))


async def test_a_run_that_brought_something_and_something_that_no_channel_took_shows_both(tenant: Tenant) -> None:
    await tenant.channel(route_filter={"include_any": ["news"]})
    run, trace = await new_run(tenant)
    posts = [await tenant.post(tags=[tag], run_id=str(run), trace_id=trace) for tag in ("news", "other")]
    [taken, _] = await tenant.put_batch(posts)
    await tenant.db.execute("UPDATE ingest_runs SET finished_at = clock_timestamp()")

    message, left = await ask(tenant, run)

    assert (message["kind"], message["message_id"]) == ("message", taken["message_id"])
    assert [post["tags"] for post in left["unrouted"]] == ["other"]


async def test_a_pulled_item_is_found_by_its_reference(tenant: Tenant) -> None:
    await tenant.channel()
    message = UUID((await tenant.enqueue("hello"))["message_id"])
    insert = "INSERT INTO pull_sources (workspace_id, source_id, kind) VALUES ($1, 'feed', 'rss')"
    await tenant.db.execute(insert, tenant.workspace)
    insert = "INSERT INTO pull_receipts (workspace_id, source_id, source_ref, message_id) VALUES ($1, 'feed', 'g', $2)"
    await tenant.db.execute(insert, tenant.workspace, message)

    assert (await ask_one(tenant, "g"))["message_id"] == str(message)


async def test_nothing_is_found_by_what_nobody_knows_nor_in_another_workspace(tenant: Tenant) -> None:
    channel = await tenant.channel()
    neighbour = await Tenant.create(tenant.db)

    assert await ask(tenant, uuid4()) == await ask(tenant, "what?") == []
    assert await ask(tenant, channel, workspace_id=neighbour.workspace) == []
    assert len(await ask(tenant, channel, workspace_id=tenant.workspace)) == 1
