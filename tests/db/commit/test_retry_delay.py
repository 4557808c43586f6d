"""The retry policy, with the jitter held still."""

from datetime import timedelta

# (attempt, retry_after_ms, code, policy, jitter): seconds
TABLE = {
    (1, None, None, "default", 0.5): 2,
    (2, None, None, "default", 0.5): 4,
    (3, None, None, "default", 0.5): 8,
    (4, None, None, "default", 0.5): 16,
    (9, None, None, "default", 0.5): 512,
    (10, None, None, "default", 0.5): 600,
    (1000, None, None, "default", 0.5): 600,
    (0, None, None, "default", 0.5): 2,
    (1, None, None, "default", 0): 1.6,
    (1, None, None, "default", 1): 2.4,
    (10, None, None, "default", 1): 720,
    (1, None, None, "publication", 0.5): 1,
    (2, None, None, "publication", 0.5): 2,
    (3, None, None, "publication", 0.5): 4,
    (1, 30000, None, "default", 0): 30,
    (1, 30000, None, "default", 1): 36,
    (4, 30000, None, "default", 0): 30,
    (1, 3_600_000, None, "default", 0): 3600,
    (1, 86_400_000, None, "default", 1): 86_400,
    (1, 999_999_999_000, None, "default", 0): 86_400,
    (1, 10**15, None, "default", 1): 86_400,
    (1, 2**63 - 1, None, "default", 0): 86_400,
    (1, 500, None, "publication", 0): 0.5,
    (1, 0, None, "default", 0.5): 0,
    (1, None, "attachment.not.ready", "default", 0): 1,
    (2, None, "attachment.not.ready", "default", 1): 5,
    (3, None, "attachment.not.ready", "default", 0.5): 8,
    (1, 9000, "attachment.not.ready", "default", 0): 9,
}


async def test_a_retry_waits_as_the_policy_says(database):
    found = {
        given: await database.pool.fetchval("SELECT retry_delay($1, $2, $3, $4, $5)", *given[:4], float(given[4]))
        for given in TABLE
    }

    assert found == {given: timedelta(seconds=seconds) for given, seconds in TABLE.items()}


async def test_two_retries_of_one_attempt_seldom_meet(database):
    rows = await database.pool.fetch("SELECT retry_delay(3) AS delay FROM generate_series(1, 100)")

    delays = {row["delay"] for row in rows}
    assert len(delays) > 50
    assert timedelta(seconds=6.4) <= min(delays)
    assert max(delays) <= timedelta(seconds=9.6)
