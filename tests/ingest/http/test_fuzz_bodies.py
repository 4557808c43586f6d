"""Whatever the body is, it is accepted or refused: nothing else happens, and a refused one leaves no row.

A few thousand bodies by default, a hundred thousand with ``AUTOPOST_FULL=1``.
"""

import asyncio
import sys
from collections import Counter
from pathlib import Path

import msgspec
import pytest
from harness.databases import Database
from harness.full import FULL
from ingest.support.fuzzing import Found
from ingest.support.ingest_client import DEMO_WORKSPACE
from ingest.support.ingest_server import opened, tell
from ingest.support.memory import ALLOWED
from ingest.support.mutations import STORED_REF, Mutator

pytestmark = pytest.mark.time_limit(480)

BODIES = 100_000 if FULL else 6_000
OVER_HTTP = 1_000 if FULL else 200

TEMPLATE = "{{ text }}\n{% for tag in tags %}#{{ tag }} {% endfor %}{{ links | join: ' ' }}{{ a }}{{ n }}"
CHANNELS: dict[str, dict[str, object]] = {
    "Demo Telegram 1": {"overflow": "split"},
    "Demo Telegram 2": {"overflow": "truncate", "on_markup": "plain"},
    "Demo MAX 1": {"overflow": "split", "on_markup": "plain"},
    "Demo MAX 2": {"overflow": "truncate"},
}
TEMPLATED = ["Demo Telegram 2", "Demo MAX 2"]

LEFT = {
    "receipts": "SELECT count(*) FROM ingress_receipts",
    "accepted": "SELECT sum((stats_json ->> 'accepted')::int) FROM ingest_runs",
    "other runs": "SELECT count(*) FROM ingest_runs "
    "WHERE NOT stats_json ?| '{accepted,refused,dedup_dropped,payload_rejected}'",
    "staged": "SELECT count(*) FROM staged_posts",
    "messages without a receipt": "SELECT count(*) FROM messages m WHERE NOT EXISTS "
    "(SELECT FROM ingress_receipts r WHERE r.run_id = m.first_ingest_run_id) AND EXISTS "
    "(SELECT FROM deliveries d WHERE d.message_id = m.message_id AND d.status <> 'failed_permanent')",
    "deliveries without a message": "SELECT count(*) FROM deliveries d WHERE NOT EXISTS "
    "(SELECT FROM messages m WHERE (m.workspace_id, m.message_id) = (d.workspace_id, d.message_id))",
}


async def left(database: Database) -> dict[str, int]:
    return {name: int(await database.pool.fetchval(query) or 0) for name, query in LEFT.items()}


@pytest.fixture
async def furnished(seeded_database: Database) -> Database:
    """Few channels, but every way to render, and a stored medium."""
    pool = seeded_database.pool
    await pool.execute("UPDATE workspace_endpoints SET ingress_rps = NULL, hash_drop_window_sec = 0")
    await pool.execute("UPDATE channels SET enabled = false WHERE NOT title = ANY ($1)", list(CHANNELS))
    for title, settings in CHANNELS.items():
        encoded = msgspec.json.encode(settings).decode()
        await pool.execute("UPDATE channels SET settings = $1 WHERE title = $2", encoded, title)
    await pool.execute(
        "INSERT INTO templates (workspace_id, template_id, version, body, defaults) VALUES ($1, 't', 1, $2, $3)",
        *(DEMO_WORKSPACE, TEMPLATE, '{"a": "", "n": 1}'),
    )
    await pool.execute("UPDATE channels SET template_ref = 't' WHERE title = ANY ($1)", TEMPLATED)
    digest = STORED_REF.removeprefix("sha256:")
    await pool.execute(
        "SELECT remember_media_origin($1, $2, $3, $4, 'image/png', 1000, 10, 10, NULL)",
        *(DEMO_WORKSPACE, STORED_REF, f"s3://media/{DEMO_WORKSPACE}/media/{digest}", digest),
    )
    return seeded_database


async def test_of_many_bodies_each_is_admitted_or_refused_and_only_the_first_leave_rows(
    furnished: Database, capfd: pytest.CaptureFixture[str]
) -> None:
    program = (sys.executable, "-m", "ingest.support.fuzzing", furnished.url, "6", str(BODIES))
    process = await asyncio.create_subprocess_exec(
        *program, stdout=asyncio.subprocess.PIPE, cwd=Path(__file__).parents[2]
    )
    told, _ = await process.communicate()
    assert process.returncode == 0  # else it has said which body it was
    found = msgspec.json.decode(told, type=Found)

    outcomes = Counter(found.outcomes)
    taken = outcomes["accepted"] + outcomes["staged"]
    share = (taken + outcomes["duplicate"] + outcomes["compiled"]) / BODIES
    tell(capfd, f"{BODIES} bodies: {share:.0%} accepted, {found.outcomes}, peak memory {found.peak >> 20} MiB")
    refused = {"unreadable", "unprocessable", "too large"}
    assert set(outcomes) <= refused | {"refused", "accepted", "staged", "duplicate", "compiled"}
    assert outcomes.total() == BODIES
    assert taken > BODIES / 20
    assert 0.2 < share < 0.7  # else the bodies are not what they are meant to be
    assert found.peak < ALLOWED
    assert await left(furnished) == {
        "receipts": taken,
        "accepted": taken,
        "other runs": 0,
        "staged": outcomes["staged"],
        "messages without a receipt": 0,
        "deliveries without a message": 0,
    }


async def test_of_many_bodies_over_http_none_is_a_500_and_only_accepted_ones_leave_rows(
    furnished: Database,
) -> None:
    mutator, statuses = Mutator(seed=7), Counter[int]()
    async with opened(furnished) as client:
        for _ in range(OVER_HTTP):
            body = mutator.body()
            tried, answer = await client.try_out(content=body), await client.post(content=body)
            assert max(tried.status_code, answer.status_code) < 500, body
            statuses[answer.status_code] += 1

    assert set(statuses) <= {200, 202, 400, 413, 422}
    assert statuses[202] > OVER_HTTP / 10
    rows = await left(furnished)
    assert (rows["receipts"], rows["accepted"]) == (statuses[202], statuses[202])
    assert (rows["messages without a receipt"], rows["deliveries without a message"]) == (0, 0)
