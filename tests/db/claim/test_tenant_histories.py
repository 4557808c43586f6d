"""Random histories of tenants that are alike in every id are what each of them would have had alone.

With a bug planted, one for each thing that could be taken for another tenant's, they are not.
"""

from collections.abc import AsyncIterator

import asyncpg
import pytest
from autopost_cli.schema import schema_files
from db.model.queue_model import Violation
from db.model.tenants_model import TenantsHistory
from db.support.consistency import consistent
from harness.databases import Database
from harness.full import FULL

HISTORIES, STEPS = (200, 120) if FULL else (8, 60)
UNTIL_FOUND = 30


@pytest.mark.parametrize("seed", range(HISTORIES))
async def test_a_history_is_what_each_tenant_would_have_alone(database: Database, seed: int) -> None:
    history = TenantsHistory(database.pool, await database.connect(), seed)

    await history.run(STEPS)

    for tenant in history.among:
        await consistent(database.pool, tenant.workspace, history.now)


READ_ONLY = "ARRAY(SELECT g.ctid FROM platform_limits g WHERE g.workspace_id = ANY (_workspaces))"
BUGS: dict[str, tuple[str, str, str]] = {
    # name: function, what its text is changed from and to
    "a slot of another tenant's group": (
        "take_slots",
        "WHERE g.workspace_id = c.workspace_id\n          AND",
        "WHERE",
    ),
    "a slot of another tenant's channel": (
        "take_slots",
        "WHERE ch.workspace_id = c.workspace_id\n              AND",
        "WHERE",
    ),
    "two slots of a group in one call": ("take_slots", "a.turn = 1 AND NOT a.is_away", "a.is_away IS NOT TRUE"),
    "slots counted over all tenants": (
        "assign_slots",
        "row_number() OVER (PARTITION BY o.group_place ORDER BY",
        "row_number() OVER (ORDER BY",
    ),
    "the rate of a group exceeded": ("assign_slots", "WHERE c.group_nth <= c.group_room", ""),
    "the rate of a channel exceeded": ("assign_slots", "p.share, c.room, g.room)", "p.share, g.room)"),
    "another tenant's token": (
        "claim_shared",
        "WHERE c.workspace_id = p.workspace_id\n                      AND",
        "WHERE",
    ),
    "another tenant's text": (
        "claim_shared",
        "WHERE r.workspace_id = p.workspace_id\n                      AND",
        "WHERE",
    ),
    "the limit of a workspace exceeded": ("assign_slots", "WHERE c.workspace_nth <= p_limit", ""),
    "the room of a claim exceeded": ("assign_slots", "LIMIT p_most", ""),
    "starved behind one who comes first": (
        "assign_slots",
        "ORDER BY c.workspace_nth, c.turn\n",
        "ORDER BY c.workspace_id\n",
    ),
    "starved by another's queue row": (
        "deliveries_after_update",
        "WHERE q.workspace_id = _taken.workspace_id\n              AND",
        "WHERE",
    ),
    "starved by another's low water": (
        "reschedule_channels",
        "WHERE d.workspace_id = s.workspace_id\n      AND",
        "WHERE",
    ),
    "starved in a full channel": ("wake_channels", "WHERE d.workspace_id = w.workspace_id\n          AND", "WHERE"),
    "a group that another claim has": ("claim_due", "lock_rate_groups(_workspaces, false, p_now)", READ_ONLY),
    "another tenant's delivery committed": (
        "lock_claims",
        "WHERE d.workspace_id = o.workspace_id\n              AND",
        "WHERE",
    ),
    "another tenant's delivery claimed": (
        "choose_deliveries",
        "WHERE d.workspace_id = t.workspace_id\n          AND",
        "WHERE",
    ),
    "a workspace that nobody asked for": (
        "lock_rate_groups",
        "WHERE g.workspace_id = w.workspace_id\n              AND (g.next",
        "WHERE (g.next",
    ),
}


@pytest.mark.parametrize("bug", BUGS)
def test_a_bug_can_be_planted_where_it_was(bug: str) -> None:
    function, right, _ = BUGS[bug]
    assert right in schema_files.function(function).text


@pytest.fixture
async def broken(database: Database, request: pytest.FixtureRequest) -> AsyncIterator[Database]:
    function, right, wrong = BUGS[request.param]
    await database.pool.execute(schema_files.function(function).text.replace(right, wrong))
    yield database


@pytest.mark.skipif(not FULL, reason="tests the tests: AUTOPOST_FULL=1")
@pytest.mark.parametrize("broken", BUGS, indirect=True)
async def test_a_planted_bug_is_found(broken: Database) -> None:
    other = await broken.connect()
    for seed in range(UNTIL_FOUND):
        try:
            await TenantsHistory(broken.pool, other, seed).run(STEPS)
        except (Violation, asyncpg.PostgresError, KeyError, ValueError) as found:
            print(f"after {seed + 1}: {found!r:.200}")  # noqa: T201 -- what it is run for
            return
    pytest.fail(f"{UNTIL_FOUND} histories noticed nothing")
