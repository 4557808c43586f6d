"""The retry policy as a variable of the dispatcher, seen to happen."""

from datetime import timedelta

from harness.eventually import eventually

from e2e.conftest import StartSystem


async def test_a_delivery_is_given_up_after_the_attempts_that_the_dispatcher_was_told(
    start_system: StartSystem,
) -> None:
    system = await start_system(AUTOPOST_MAX_ATTEMPTS="2", AUTOPOST_BACKOFF_BASE="20ms", AUTOPOST_BACKOFF_CAP="40ms")
    await system.control("faults", {"effect": {"status": 500}})

    assert (await system.post(text="never arrives")).status_code == 202

    async def given_up() -> bool:
        return await system.statuses() == {"dead": 40}

    await eventually(given_up, within=timedelta(minutes=1))
    attempts = await system.database.fetch("SELECT DISTINCT attempt, max_attempts FROM deliveries")
    assert [tuple(row) for row in attempts] == [(2, 2)]
