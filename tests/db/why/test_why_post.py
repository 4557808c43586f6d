"""A post that was staged says what its media wait for."""

import json
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any
from uuid import UUID, uuid4

from db.support.builders import Tenant
from db.support.operators import Operator
from db.support.why_answers import ask, ask_one

HOUR = timedelta(hours=1)
URL = "https://user:canary@pictures.example:8443/secret-canary.png?token=canary"


async def staged(tenant: Tenant, **columns: Any) -> dict[str, Any]:
    """A post with two media: one to fetch, one that the platform holds already."""
    endpoint = await tenant.db.fetchval(
        "INSERT INTO workspace_endpoints (workspace_id, kind, secret_hash) "
        "VALUES ($1, 'webhook_push', encode(sha256(gen_random_uuid()::text::bytea), 'hex')) RETURNING endpoint_id",
        tenant.workspace,
    )
    run = await tenant.db.fetchval(
        "INSERT INTO ingest_runs (workspace_id, kind, trace_id) VALUES ($1, 'push', $2) RETURNING run_id",
        *(tenant.workspace, uuid4().hex),
    )
    media = [{"type": "image", "url": f" {URL}\n"}, {"type": "video", "file_id": "abc"}]
    given = {
        "workspace_id": tenant.workspace,
        "endpoint_id": endpoint,
        "run_id": run,
        "request": json.dumps({"media": media}),
        **columns,
    }
    places = ", ".join(f"${place}" for place in range(1, len(given) + 1))
    query = f"INSERT INTO staged_posts ({', '.join(given)}) VALUES ({places}) RETURNING *"
    row = await tenant.db.fetchrow(query, *given.values())
    assert row is not None
    return dict(row)


async def fetching(tenant: Tenant, post: dict[str, Any], **columns: Any) -> None:
    given = {"workspace_id": tenant.workspace, "url_hash": sha256(URL.encode()).hexdigest()}
    given |= {"post_id": post["post_id"], "lease_token": post["lease_token"], **columns}
    places = ", ".join(f"${place}" for place in range(1, len(given) + 1))
    await tenant.db.execute(f"INSERT INTO media_fetches ({', '.join(given)}) VALUES ({places})", *given.values())


async def test_a_staged_post_says_what_each_medium_waits_for_and_no_secret_of_an_address(tenant: Tenant) -> None:
    error = {"code": "http_503", "field": "media[0].url", "host": "pictures.example"}
    later = datetime.now(UTC) + HOUR
    post = await staged(tenant, attempt=2, last_error=json.dumps(error), next_attempt_at=later)

    told = await ask_one(tenant, post["post_id"])

    assert (told["status"], told["attempt"], told["error"]["code"]) == ("staged", 2, "http_503")
    assert (told["gate"]["gate"], told["gate"]["released_by"]) == ("staged_media", "time")
    assert datetime.fromisoformat(told["gate"]["until"]) == later
    assert told["media"] == [
        {"place": 0, "type": "image", "host": "pictures.example", "state": "waiting", "error": "http_503"},
        {"place": 1, "type": "video", "state": "given"},
    ]
    assert "canary" not in json.dumps(told)


async def test_a_medium_is_being_fetched_waited_for_or_fetched(tenant: Tenant) -> None:
    later = datetime.now(UTC) + HOUR
    lease = {"status": "fetching", "lease_token": uuid4(), "lease_until": later, "next_attempt_at": later}
    ours, other = await staged(tenant, **lease), await staged(tenant, **lease | {"lease_token": uuid4()})
    await fetching(tenant, ours)

    mine, theirs = await ask_one(tenant, ours["post_id"]), await ask_one(tenant, other["post_id"])
    await tenant.db.execute("UPDATE media_fetches SET finished_at = clock_timestamp(), blob_ref = 'b'")
    done = await ask_one(tenant, other["post_id"])

    assert (mine["media"][0]["state"], mine["gate"]["released_by"]) == ("fetching", "ingest")
    assert (theirs["media"][0]["state"], theirs["media"][0]["waits_for"]) == ("busy", str(ours["post_id"]))
    assert done["media"][0]["state"] == "fetched"


async def test_a_staged_post_that_was_given_up_says_so_in_its_history(tenant: Tenant) -> None:
    later = datetime.now(UTC) + HOUR
    lease = {"status": "fetching", "lease_token": uuid4(), "lease_until": later, "next_attempt_at": later, "attempt": 5}
    post = await staged(tenant, **lease)
    query = "SELECT fail_staged_post($1, $2, $3, $4, 0)"
    await tenant.db.execute(query, tenant.workspace, post["post_id"], post["lease_token"], '{"code": "http_404"}')

    told = await ask_one(tenant, post["post_id"])

    assert (told["status"], told["gate"], told["error"]["code"]) == ("failed", None, "http_404")
    [event] = told["history"]
    assert (event["action"], event["attempt"], event["code"]) == ("media_failed", 5, "http_404")


async def test_a_staged_post_in_a_workspace_that_rests_is_held_by_that(tenant: Tenant) -> None:
    post = await staged(tenant)
    await tenant.db.execute("UPDATE workspaces SET status = 'paused' WHERE workspace_id = $1", tenant.workspace)

    gate = (await ask_one(tenant, post["post_id"]))["gate"]
    assert gate["command"].startswith(f"autopost workspace resume --workspace {tenant.workspace}")
    await Operator(tenant).turn_workspace("active")

    assert gate["gate"] == "workspace_paused"
    assert (await ask_one(tenant, post["post_id"]))["gate"]["gate"] == "staged_media"


async def test_a_staged_post_that_was_enqueued_is_followed_by_its_message(tenant: Tenant) -> None:
    await tenant.channel()
    message = (await tenant.enqueue("hello"))["message_id"]
    post = await staged(tenant, status="enqueued", message_id=UUID(message))

    by_post, by_run = await ask(tenant, post["post_id"]), await ask(tenant, post["run_id"])

    assert [(one["kind"], one.get("gate"), one["message_id"]) for one in by_post] == [
        ("post", None, message),
        ("message", None, message),
    ]
    assert [one["kind"] for one in by_run] == ["post", "message"]
