"""Whatever the body is, it is accepted or refused: nothing else happens, and a refused one leaves no row.

A few thousand bodies by default, a hundred thousand where CI is set.
"""

import os
from collections import Counter

import pytest
from autopost_ingest.compile import compile_for
from autopost_ingest.normalize import Refused, normalize
from autopost_ingest.reading import read_post
from autopost_runtime.web import Problem, respond
from harness.databases import Database

from ingest.mutations import Mutator
from ingest.opening import opened, tell

WHOLE = bool(os.environ.get("CI"))
BODIES = 100_000 if WHOLE else 6_000
STORED = 3_000 if WHOLE else 400


def outcome(body: bytes) -> str:
    """As the receiver decides it, up to the database. Any other exception is what a sender would see as 500."""
    try:
        normalized = normalize(read_post(body))
    except Problem as problem:
        assert respond(problem).status == 400
        return "unreadable"
    except Refused as refused:
        assert respond(Problem(422, "Unprocessable Content", refused.reason, field=refused.field)).body
        return "unprocessable"
    compile_for(normalized, ())
    return "accepted"


def test_of_many_bodies_each_is_accepted_or_refused(capfd: pytest.CaptureFixture[str]) -> None:
    mutator = Mutator(seed=6)

    outcomes = Counter(outcome(mutator.body()) for _ in range(BODIES))

    share = outcomes["accepted"] / BODIES
    tell(capfd, f"{BODIES} bodies: {share:.0%} accepted, {dict(outcomes)}")
    assert outcomes.total() == BODIES
    assert 0.2 < share < 0.7  # else the bodies are not what they are meant to be


async def test_of_many_bodies_over_http_none_is_a_500_and_only_accepted_ones_leave_rows(
    seeded_database: Database,
) -> None:
    await seeded_database.pool.execute("UPDATE workspace_endpoints SET ingress_rps = NULL, hash_drop_window_sec = 0")
    mutator, statuses = Mutator(seed=7), Counter[int]()
    async with opened(seeded_database) as door:
        for _ in range(STORED):
            answer = await door.post(content=mutator.body())
            assert answer.status_code < 500, answer.request.content
            statuses[answer.status_code] += 1

        accepted = statuses[202] + statuses[200]
        assert set(statuses) <= {200, 202, 400, 413, 422}
        assert accepted > STORED / 10
        assert (await door.rows())["ingress_receipts"] <= accepted
        assert await door.sql("SELECT sum((stats_json ->> 'accepted')::int) FROM ingest_runs") == statuses[202]
        orphans = (
            "SELECT count(*) FROM messages m "
            "WHERE NOT EXISTS (SELECT FROM ingress_receipts r WHERE r.run_id = m.first_ingest_run_id)"
        )
        assert await door.sql(orphans) == 0
