"""Random histories over several connections, against a model that knows what the queue may do.

300 of them, 2,000 with ``AUTOPOST_FULL=1``; ``AUTOPOST_HISTORIES`` says how many, ``AUTOPOST_HISTORY_SEED`` where the
seeds start instead of 1. What fails is made small and printed; its seed gives it again.
"""

import os

import pytest
from db.model.runner import run_all
from db.model.steps import install
from harness.full import FULL

pytestmark = pytest.mark.time_limit(480)

HISTORIES = int(os.environ.get("AUTOPOST_HISTORIES", "2000" if FULL else "300"))
FIRST_SEED = int(os.environ.get("AUTOPOST_HISTORY_SEED", "1"))
SHARDS = 2


@pytest.mark.parametrize("shard", range(SHARDS))
async def test_no_history_breaks_an_invariant(database, shard):
    connection = await database.connect()
    await install(connection)

    tally = await run_all(database.url, list(range(FIRST_SEED + shard, FIRST_SEED + HISTORIES, SHARDS)))

    for history, violation in tally.failures:
        pytest.fail(f"{violation}\n  {history}")
    print(f"{tally.histories} histories, {tally.steps} steps, {tally.waits} of them waited")  # noqa: T201 -- for -rP
    assert tally.steps >= 40 * tally.histories
    assert tally.waits > 0, "no step met another's transaction"
