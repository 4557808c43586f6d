"""The retry policy as a variable of the dispatcher, seen to happen."""

from datetime import timedelta

from harness.eventually import eventually

from e2e.conftest import StartSystem

MADE = """
SELECT d.max_attempts, d.attempt,
       (SELECT count(*) FROM events e WHERE e.delivery_id = d.delivery_id AND e.result = 'error') AS failed,
       (SELECT count(*) FROM events e WHERE e.delivery_id = d.delivery_id AND e.meta ? 'released') AS released
FROM deliveries d
"""
"""A claim of a machine under load may be released unsent: it has used an attempt and no call was made."""


async def test_a_delivery_is_given_up_after_the_attempts_that_the_dispatcher_was_told(
    start_system: StartSystem,
) -> None:
    system = await start_system(AUTOPOST_MAX_ATTEMPTS="2", AUTOPOST_BACKOFF_BASE="20ms", AUTOPOST_BACKOFF_CAP="40ms")
    # An answer: a platform that gives none would be waited for.
    await system.control("faults", {"effect": {"status": 429, "retry_after": 0}})

    assert (await system.post(text="never arrives")).status_code == 202

    async def given_up() -> bool:
        return await system.statuses() == {"dead": 40}

    await eventually(given_up, within=timedelta(minutes=1))
    rows = await system.database.fetch(MADE)
    assert {row["max_attempts"] for row in rows} == {2}
    assert all(row["attempt"] >= 2 and row["failed"] <= 2 for row in rows)
    assert all(row["attempt"] == row["failed"] + row["released"] for row in rows)
