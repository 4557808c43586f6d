"""Publications over HTTP: who may do what, which version, what each refusal says, and what it leads to."""

from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from uuid import uuid4

import pytest
from db.support.builders import Tenant, sent
from harness.databases import Database
from ingest.support.publication_client import PublicationClient, at, publication_client

HOUR = timedelta(hours=1)
VERBS = {
    "approve": None,
    "schedule": {"at": "2030-01-01T00:00:00Z"},
    "unschedule": None,
    "cancel": {"reason": "a test"},
    "retry": {"reason": "a test"},
    "resolve": {"decision": "sent", "reason": "a test"},
}


@pytest.fixture
async def client(database: Database, tenant: Tenant) -> AsyncIterator[PublicationClient]:
    async with publication_client(database, tenant) as made:
        yield made


async def test_from_a_draft_to_its_delivery(client):
    drafted = await client.call("POST", "", client.creative(timezone="Europe/Moscow", owner="ann"))
    assert (drafted.status_code, drafted.headers["ETag"]) == (201, '"1"')
    publication = drafted.json()["publication_id"]

    previewed = (await client.do(publication, "preview")).json()
    assert (previewed["rendered_text"], previewed["calls"], previewed["problems"]) == ("<b>Sale</b>", 1, [])
    approved = await client.do(publication, "approve", {"plan_hash": previewed["plan_hash"]})
    scheduled = await client.do(publication, "schedule", {"at": at()}, headers={"X-Operator": "bob@shop.example"})

    assert approved.json()["approved_plan_hash"] == previewed["plan_hash"]
    shown = scheduled.json()
    assert (shown["status"], shown["approved_by"], shown["changed_by"]) == (
        *("scheduled", "crm"),
        "bob@shop.example (crm)",
    )
    assert shown["scheduled_local"].endswith("+03:00")
    assert (shown["late_after"], scheduled.headers["ETag"]) == ("PT86400S", '"2"')
    assert client.ear.heard == [f"autopost.wakeup.publish.{client.tenant.workspace}"]
    assert await client.show(publication) == {k: v for k, v in shown.items() if k not in ("warnings", "trace_id")} | {
        "trace_id": (await client.show(publication))["trace_id"]
    }


@pytest.mark.parametrize("verb", [*VERBS, "edit"])
async def test_a_change_needs_the_current_version(client, verb):
    publication = await client.draft()
    method, path = ("PUT", f"/{publication}") if verb == "edit" else ("POST", f"/{publication}/{verb}")
    body = client.creative() if verb == "edit" else VERBS[verb]

    missing = await client.call(method, path, body)
    stale = await client.call(method, path, body, version='"7"')
    nonsense = await client.call(method, path, body, version='"x"')

    assert (missing.status_code, missing.json()["field"]) == (428, "If-Match")
    assert (stale.status_code, stale.json()["version"], stale.headers["ETag"]) == (412, 1, '"1"')
    assert nonsense.status_code == 400


@pytest.mark.parametrize(
    ("verb", "scope"),
    [("draft", "draft"), ("edit", "draft"), ("approve", "approve")]
    + [(verb, "schedule") for verb in VERBS if verb != "approve"],
)
async def test_a_missing_scope_is_named(client, verb, scope):
    publication = await client.draft()
    others = tuple(one for one in ("draft", "approve", "schedule") if one != scope)
    await client.endpoint("less", others)
    method, path = {"draft": ("POST", ""), "edit": ("PUT", f"/{publication}")}.get(
        verb, ("POST", f"/{publication}/{verb}")
    )

    refused = await client.call(method, path, VERBS.get(verb, client.creative()), version='"1"', secret="less")
    reads = [await client.call("GET", path, secret="less") for path in ("", f"/{publication}", ".ics")]
    reads.append(await client.call("POST", f"/{publication}/preview", secret="less"))

    assert (refused.status_code, refused.json()["scope"]) == (403, scope)
    assert [read.status_code for read in reads] == [200] * 4


async def test_only_a_secret_of_publications_opens_the_door(client):
    for secret in ("wrong", "demo-push-secret-for-development"):
        answer = await client.call("GET", "", secret=secret)
        assert answer.status_code == 401
    await client.tenant.db.execute("UPDATE workspaces SET status = 'disabled'")
    await client.endpoint("fresh")
    assert (await client.call("GET", "", secret="fresh")).status_code == 403


async def test_another_tenant_sees_and_changes_nothing(client, database):
    publication = await client.draft()
    other = await Tenant.create(database.pool)
    mine, client.tenant = client.tenant, other
    await client.endpoint("theirs")

    seen = await client.call("GET", f"/{publication}", secret="theirs")
    changed = await client.do(publication, "cancel", {"reason": "x"}, version="*", secret="theirs")
    named = await client.call("GET", f"?workspace_id={mine.workspace}", secret="theirs")

    assert (seen.status_code, changed.status_code, named.json()["publications"]) == (404, 404, [])


# rows of the ways to get it wrong: an edit after the approval, and what the channel shows after its settings changed


async def test_an_edit_takes_the_approval_back(client):
    publication = await client.approved()

    edited = await client.call("PUT", f"/{publication}", client.creative("other"), version='"1"')
    refused = await client.do(publication, "schedule", {"at": at()})

    assert (edited.json()["status"], edited.json()["version"]) == ("draft", 2)
    assert (refused.status_code, refused.json()["code"]) == (409, "not_approved")


async def test_what_is_approved_is_what_was_previewed(client):
    publication = await client.draft()
    previewed = (await client.do(publication, "preview")).json()["plan_hash"]
    await client.tenant.db.execute("UPDATE channels SET settings = '{\"disable_preview\": true}'")

    refused = await client.do(publication, "approve", {"plan_hash": previewed})

    assert (refused.status_code, refused.json()["code"]) == (409, "plan_changed")


@pytest.mark.parametrize(
    "creative",
    [{"text": "x" * 5000}, {}, {"text": "a", "buttons": [[{"text": "b", "url": "not a url"}]]}],
    ids=["too long", "empty", "bad button"],
)
async def test_a_creative_without_a_plan_is_not_approved_and_says_why(client, creative):
    publication = await client.draft(creative_draft=creative)

    previewed = (await client.do(publication, "preview")).json()
    refused = await client.do(publication, "approve")

    assert previewed["plan_hash"] is None
    assert refused.status_code == 422
    assert refused.json()["problems"] == previewed["problems"] != []
    assert refused.json()["field"].startswith("creative_draft")


async def test_an_edit_keeps_what_it_leaves_out(client):
    publication = await client.draft(owner="ann", timezone="Europe/Moscow", late_after="PT2H")

    edited = await client.call("PUT", f"/{publication}", client.creative(owner=None), version='"1"')

    shown = edited.json()
    assert (shown["owner"], shown["timezone"], shown["late_after"]) == (None, "Europe/Moscow", "PT7200S")


@pytest.mark.parametrize("time", ["a", "b", "a"])
async def test_a_time_can_be_changed_and_changed_back(client, time):
    times = {"a": at(HOUR), "b": at(2 * HOUR)}
    publication = await client.scheduled(HOUR)

    for one in ("b", "a", time):
        assert (await client.do(publication, "schedule", {"at": times[one]})).status_code == 200

    shown = await client.show(publication)
    assert (datetime.fromisoformat(shown["scheduled_at"]).isoformat(), shown["version"]) == (times[time], 5)


async def test_schedule_warns_of_what_is_near(client):
    first, second = await client.scheduled(HOUR, "one"), await client.approved("two")

    answer = await client.do(second, "schedule", {"at": at(HOUR)})

    [warning] = answer.json()["warnings"]
    assert (warning["code"], warning["publication_id"]) == ("close_to_another", first)


async def test_a_closed_window_is_refused_with_its_opening(client):
    publication = await client.approved()
    await client.tenant.db.execute(
        "UPDATE channels SET window_mode = 'windowed', timezone = 'UTC',"
        ' posting_window = \'{"tue": [["09:00", "10:00"]]}\''
    )

    answer = await client.do(publication, "schedule", {"at": "2030-01-01T03:00:00Z"})

    assert (answer.status_code, answer.json()["code"], answer.json()["field"]) == (422, "outside_window", "at")
    assert answer.json()["opens_at"] == "2030-01-01T09:00:00+00:00"


async def test_a_disabled_channel_and_the_past_are_refused(client):
    publication = await client.approved()

    past = await client.do(publication, "schedule", {"at": at(-HOUR)})
    await client.tenant.db.execute("UPDATE channels SET enabled = false")
    disabled = await client.do(publication, "schedule", {"at": at(HOUR)})

    assert [(one.status_code, one.json()["code"]) for one in (past, disabled)] == [
        (422, "in_past"),
        (422, "channel_disabled"),
    ]


async def test_an_unscheduled_publication_keeps_its_approval(client):
    publication = await client.scheduled(HOUR)

    answer = await client.do(publication, "unschedule")
    again = await client.do(publication, "unschedule")

    assert (answer.json()["status"], answer.json()["scheduled_at"]) == ("approved", None)
    assert (again.status_code, again.json()["code"]) == (409, "not_scheduled")


async def begun(client: PublicationClient) -> str:
    """Its delivery waits to be claimed."""
    publication = await client.scheduled()
    [due] = (await client.gateway.due_publications(10)).due
    prepared = await client.gateway.read_publication(due.workspace_id, due.publication_id)
    compiled = await client.compiler.compile(due.workspace_id, prepared)
    assert await client.gateway.begin_publication(due.workspace_id, due.publication_id, due.version, compiled.post)
    return publication


async def test_cancel_before_and_after_its_call(client):
    early = await client.scheduled(HOUR, "early")
    waiting = await begun(client)

    cancelled = [await client.do(one, "cancel", {"reason": "a wrong price"}) for one in (early, waiting)]
    again = await client.do(early, "cancel", {"reason": "x"}, version="*")
    late = await begun(client)
    claim = await client.tenant.claim_one()
    too_late = await client.do(late, "cancel", {"reason": "x"})
    await client.tenant.commit(sent(claim))

    assert [(one.status_code, one.json()["status"]) for one in cancelled] == [(200, "cancelled")] * 2
    assert (again.status_code, again.json()["code"]) == (409, "already")
    assert (too_late.status_code, too_late.json()["code"]) == (409, "too_late")
    assert (await client.show(late))["status"] == "published"
    assert {row["status"] for row in await client.tenant.deliveries()} == {"cancelled", "sent"}


async def test_the_list_is_by_time_in_pages_and_filtered(client):
    later, sooner = await client.scheduled(2 * HOUR, "later"), await client.scheduled(HOUR, "sooner")
    draft = await client.draft("draft")

    async def ids(query: str = "") -> list[str]:
        return [one["publication_id"] for one in (await client.call("GET", query)).json()["publications"]]

    first = (await client.call("GET", "?limit=2")).json()
    assert await ids() == [sooner, later, draft]
    assert await ids(f"?limit=2&after={first['next']}") == [draft]
    assert await ids("?status=draft,approved") == [draft]
    assert await ids(f"?from={at(1.5 * HOUR)}") == [later]
    assert await ids(f"?channel={uuid4()}") == []


@pytest.mark.parametrize(
    ("query", "field"),
    [
        *(("?status=gone", "status"), ("?from=noon", "from"), ("?limit=0", "limit"), ("?limit=9999", "limit")),
        *(("?channel=x", "channel"), ("?after=x", "after"), ("?colour=red", "colour"), ("?to=2030-01-01", "to")),
    ],
)
async def test_a_filter_that_makes_no_sense_is_named(client, query, field):
    answer = await client.call("GET", query)

    assert (answer.status_code, answer.json()["field"]) == (400, field)


HOSTILE = {
    b"": "channel_id",
    b"[]": None,
    b"{": None,
    b'{"channel_id": 1}': "channel_id",
    b'{"channel_id": "x", "creative_draft": {}}': "channel_id",
    b'{"a": 1, "a": 2}': "a",
    b"[" * 5000: None,
    b'{"x": [' + b"1," * 9000 + b"1]}": None,
    b'{"creative_draft": {"txt": "x"}}': "creative_draft.txt",
    b"\xff": None,
}


@pytest.mark.parametrize("body", HOSTILE, ids=lambda body: str(body[:20]))
async def test_a_body_that_is_no_publication_is_refused_and_nothing_is_stored(client, body):
    answer = await client.call("POST", "", content=body)

    assert answer.status_code == 400
    assert (HOSTILE[body] or "") in f"{answer.json().get('field')} {answer.json()['detail']}"
    assert await client.tenant.count("publications") == 0


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ({"timezone": "Mars/Olympus"}, "timezone"),
        ({"timezone": "../../etc/passwd"}, "timezone"),
        ({"timezone": "Europe"}, "timezone"),
        ({"late_after": "PT0S"}, "late_after"),
        ({"owner": "http://shop.example/hook"}, "owner"),
        ({"late_after": "P9999D"}, "late_after"),
        ({"channel_id": str(uuid4())}, "channel_id"),
        ({"creative_draft": {"media": [{"type": "photo"}]}}, "creative_draft.media[0]"),
    ],
)
async def test_a_value_that_is_wrong_is_422_and_named(client, more, field):
    answer = await client.call("POST", "", client.creative() | more)

    assert (answer.status_code, answer.json()["field"]) == (422, field)


async def test_a_large_body_is_refused(client):
    answer = await client.call("POST", "", client.creative("x" * 70_000))

    assert answer.status_code == 413


@pytest.mark.parametrize("operator", ["x" * 101, b"\xff\xfe"])
async def test_an_operator_is_a_short_name(client, operator):
    answer = await client.call("POST", "", client.creative(), headers={"X-Operator": operator})

    assert (answer.status_code, answer.json()["field"]) == (400, "X-Operator")


async def test_the_hint_of_a_workspace_is_ignored_everywhere(client):
    publication = await client.draft(workspace_id=str(uuid4()))

    answer = await client.do(publication, "approve", {"workspace_id": {"any": [1]}})

    assert answer.status_code == 200


async def test_the_calendar_is_one_that_programs_read(client):
    text = "Скидки, скидки; 20 % \\ everything must go! " * 2
    await client.scheduled(HOUR, text)
    await client.draft("without a time")

    answer = await client.call("GET", ".ics")

    assert answer.headers["content-type"].startswith("text/calendar")
    assert all(len(line) <= 75 for line in answer.content.split(b"\r\n"))
    lines = answer.text.replace("\r\n ", "").split("\r\n")
    assert (lines[0], lines[-2], lines.count("BEGIN:VEVENT")) == ("BEGIN:VCALENDAR", "END:VCALENDAR", 1)
    event = dict(line.split(":", 1) for line in lines if ":" in line and not line.startswith(("BEGIN", "END")))
    assert (event["STATUS"], event["SEQUENCE"]) == ("CONFIRMED", "2")
    assert event["SUMMARY"].startswith("[scheduled] Скидки\\, скидки\\; 20 % \\\\ everything")
