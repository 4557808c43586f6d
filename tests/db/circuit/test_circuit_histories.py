"""Random histories of a circuit are what its rules say; with a bug planted they are not."""

import asyncio
import json
import random
from collections.abc import AsyncIterator

import asyncpg
import pytest
from autopost_cli.schema import schema_files
from db.model.circuit_model import ENDINGS, CircuitHistory
from db.model.queue_model import Violation
from db.support.builders import Tenant
from db.support.circuits import Circuit
from harness.databases import Database
from harness.full import FULL

HISTORIES, STEPS, TOGETHER = (200, 120, 40) if FULL else (10, 60, 12)
UNTIL_FOUND = 120


@pytest.mark.parametrize("seed", range(HISTORIES))
async def test_a_history_is_what_the_rules_say(tenant: Tenant, seed: int) -> None:
    await CircuitHistory(tenant, seed).run(STEPS)


BUGS: dict[str, tuple[str, str, str]] = {
    # name: function, what its text is changed from and to
    "an open group is claimed": ("claimable_at", "ELSE 'infinity'", "ELSE '-infinity'"),
    "answers on the fast way clear nothing": (
        "commit_sent",
        "EXISTS (SELECT 1 FROM circuits_in_doubt(ARRAY[p_workspace_id])) OR",
        "",
    ),
    "two failures open": ("settle_circuits", "cardinality(_failed) = 3", "cardinality(_failed) = 2"),
    "one delivery opens alone": ("settle_circuits", "array_remove(_failed, _outcome.delivery_id)", "_failed"),
    "a failure clears those before": (
        "settle_circuits",
        "IF _outcome.answered THEN\n                _failed",
        "IF true THEN\n                _failed",
    ),
    "a wait that was named counts": (
        "settle_circuits",
        "_outcome.no_answer AND NOT _outcome.names_wait",
        "_outcome.no_answer",
    ),
    "an upload host counts": ("settle_circuits", "AND o.scope = 'platform' AS no_answer", "AS no_answer"),
    "a delivery that fails again asks nobody": (
        "settle_circuits",
        "_asked := _asked OR _outcome.delivery_id = ANY (_failed);",
        "",
    ),
    "any outcome ends the trial": (
        "settle_circuits",
        "CONTINUE WHEN _outcome.delivery_id IS DISTINCT FROM _group.trial;",
        "",
    ),
    "a trial without an answer closes": (
        "settle_circuits",
        "IF _outcome.answered THEN\n                    PERFORM close",
        "IF true THEN\n                    PERFORM close",
    ),
    "a trial that asked nothing opens": ("end_trial", "WHEN p_error IS NULL THEN 'half'", "WHEN false THEN 'half'"),
    "two trials at once": ("claim_trial", "AND g.trial IS NULL", ""),
    "a trial of an open circuit": ("claim_trial", "AND g.circuit = 'half'", "AND g.circuit <> 'closed'"),
    "a trial is the oldest": ("trial_delivery", "ORDER BY w.is_risky, w.attempt, q.sort_at", "ORDER BY q.sort_at"),
    "a live trial is given up": ("end_lost_trials", "AND d.sending_lease_until >= p_now", "AND false"),
    "a lost trial is waited for": ("end_lost_trials", "AND d.sending_lease_until >= p_now", ""),
    "an old probe counts": ("record_probe", "AND g.probe_at = p_probe_at", ""),
    "a failed probe lets try": (
        "record_probe",
        "_circuit = 'open' AND p_answered THEN 'half'",
        "_circuit = 'open' THEN 'half'",
    ),
    "the number of the probes begins again": ("end_trial", "trial = NULL,", "trial = NULL, probes = 0,"),
    "closing leaves no event": ("close_circuit", "FROM was w, closed c", "FROM was w, closed c WHERE false"),
}


FOUND_BY = {
    "one delivery opens alone": 5,
    "a delivery that fails again asks nobody": 5,
    "any outcome ends the trial": 28,
    "a lost trial is waited for": 59,
    "an old probe counts": 4,
}
"""The first history that notices a bug which few notice. It is tried first, and then all of them."""


@pytest.fixture
async def broken(database: Database, request: pytest.FixtureRequest) -> AsyncIterator[Database]:
    name, old, new = BUGS[request.param]
    [text] = [one.text for one in schema_files.objects() if one.name.endswith(f"/{name}.sql")]
    assert old in text, "the place of the bug has moved"
    await database.pool.execute(text.replace(old, new))
    yield database


@pytest.mark.parametrize("broken", BUGS, indirect=True)
async def test_a_planted_bug_is_found(broken: Database, request: pytest.FixtureRequest) -> None:
    first = FOUND_BY.get(request.node.callspec.params["broken"], 0)
    for seed in (first, *range(UNTIL_FOUND)):
        history = CircuitHistory(await Tenant.create(broken.pool), seed)
        try:
            await history.run(STEPS)
        except (Violation, asyncpg.IntegrityConstraintViolationError, StopIteration):
            return
        await history.end()
    pytest.fail(f"{UNTIL_FOUND} histories noticed nothing")


async def test_histories_in_one_database_are_alone(database: Database) -> None:
    """So what a planted bug is found by is the bug."""
    for seed in range(TOGETHER):
        history = CircuitHistory(await Tenant.create(database.pool), seed)
        await history.run(STEPS)
        await history.end()


@pytest.mark.parametrize("seed", range(30 if FULL else 3))
async def test_of_many_at_once_nothing_but_one_trial_at_a_time_goes_out_while_a_platform_is_away(
    database: Database, tenant: Tenant, seed: int
) -> None:
    """The order of the events is that of the lock of the group, so it tells what was known when."""
    await tenant.channels(3, max_parallel=4)
    await asyncio.gather(*(some_worker(tenant, seed * 10 + number) for number in range(5)))
    await at_once_ends(tenant)

    state, trial, attempts, trials = "closed", None, 0, 0
    for event in await tenant.events():
        is_trial = json.loads(event["meta"]).get("trial", False)
        match event["what"]:
            case "group_opened":
                assert state == "closed"
                state = "away"
            case "group_closed":
                assert state == "away"
                state = "closed"
            case "send_attempt":
                assert (state == "away") == is_trial, event
                attempts, trials = attempts + 1, trials + is_trial
                assert not is_trial or trial is None, "one trial at a time"
                trial = event["delivery_id"] if is_trial else trial
            case "sent" | "retry_scheduled" | "failed_permanent" | "dead_letter":
                trial = None if event["delivery_id"] == trial else trial
    assert (await Circuit(tenant).state() == "closed") == (state == "closed")
    assert attempts > 20
    assert trials > 0


async def some_worker(tenant: Tenant, seed: int) -> None:
    """Claims, sends to a platform that comes and goes, commits, and probes."""
    dice, circuit = random.Random(seed), Circuit(tenant)
    for step in range(40):
        is_there = (seed // 10 + step) // 8 % 2 == 0
        if dice.random() < 0.3:
            await tenant.enqueue(max_attempts=9)
        claims = await tenant.claim(3)
        for probe in await circuit.takes(100):
            if not probe["is_trial"]:
                await circuit.record(probe, answered=is_there)
            claims += await circuit.trial()
        endings = ("sent", "sent", "429") if is_there else ("silence", "ambiguous", "silence", "sent")
        if claims:
            await tenant.commit(*(ENDINGS[dice.choice(endings)](claim) for claim in claims))
        if dice.random() < 0.3:
            await circuit.due()
        await circuit.wait_is_over()


async def at_once_ends(tenant: Tenant) -> None:
    left = await tenant.db.fetch(
        "SELECT count(*) AS n FROM deliveries WHERE workspace_id = $1 AND status = 'sending'", tenant.workspace
    )
    assert left[0]["n"] == 0
