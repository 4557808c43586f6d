"""What is typed into psql is masked as what is typed into a command, by patterns of the same meaning."""

import pytest
from autopost_runtime.secrets.redaction import redact
from db.support.operators import meta
from harness.database_time import DatabaseTime
from harness.databases import Database
from harness.growth import MOST
from harness.hostile_texts import SECRETS as HOSTILE
from harness.hostile_texts import TEXTS
from harness.redaction_samples import CUT, HARMLESS, LOOKED_AT, PEOPLE, PEOPLE_IN_LINKS, SECRETS, TOKEN

NESTED = [text for text in SECRETS if '\\"api_key' in text]
"""JSON inside JSON: only Python takes it apart, SQL masks the rest of it."""
REASON = f"token {TOKEN}, call +7 900 123-45-67 or bob@example.com, Authorization: Bearer abc.def"
CLEAN = "token ***, call *** or ***, Authorization: Bearer ***"


async def redacted(database: Database, text: str) -> str:
    found: str = await database.pool.fetchval("SELECT redact($1)", text)
    return found


async def test_people_and_secrets_are_masked_and_nothing_else(database: Database) -> None:
    people = (f"Bad Request: {person}, is not known" for person in PEOPLE)
    texts = [*SECRETS, *HARMLESS, *people, *PEOPLE_IN_LINKS, REASON, ""]

    assert {text: await redacted(database, text) for text in texts if text not in NESTED} == {
        text: redact(text).removesuffix('"') if text.endswith("cut he") else redact(text)
        for text in texts
        if text not in NESTED
    }
    assert not any(["hush" in await redacted(database, text) for text in NESTED])


async def test_what_was_cleaned_is_clean(database: Database) -> None:
    for text in (*SECRETS, *PEOPLE, REASON):
        by_sql, by_command = await redacted(database, text), redact(text)
        assert await redacted(database, by_sql) == by_sql
        assert await redacted(database, by_command) == by_command


@pytest.mark.parametrize(
    ("call", "state"),
    [
        ("pause_channels($1, $2, NULL, $3, $4)", ""),
        ("disable_channels($1, $2, NULL, $3, $4)", ""),
        ("resume_channels($1, $2, NULL, $3, $4)", "paused_until = 'infinity'"),
        ("enable_channels($1, $2, NULL, $3, $4)", "enabled = false"),
        ("rotate_auth($1, $2, 'other', NULL, $3, $4)", ""),
    ],
)
async def test_a_pasted_page_leaves_no_secret_in_its_event(tenant, call, state):
    channel = await tenant.channel()
    if state:
        await tenant.set_channel(channel, state)

    await tenant.db.execute(f"SELECT * FROM {call}", tenant.workspace, channel, "bob@example.com", REASON)

    told = meta((await tenant.events())[-1])
    assert (told["operator"], told["reason"]) == ("bob@example.com", CLEAN)


async def test_a_status_token_keeps_no_secret_of_its_reasons(database: Database) -> None:
    issue = "SELECT issue_status_token($1, NULL, 'wall', '1 day', 'ann', $2)"
    await database.pool.execute(issue, "0" * 64, REASON)
    await database.pool.execute("SELECT revoke_status_token('wall', 'ann', $1)", REASON)

    row = await database.pool.fetchrow("SELECT reason, revoked_reason FROM status_tokens")

    assert tuple(row or ()) == (CLEAN, CLEAN)


LONG = 4096
"""More than is looked at of a text of strangers."""
SLOWEST = 0.04
"""Seconds of CPU time, for the most hostile text: it took 0.1 while patterns repeated up to sixty times."""


async def test_the_most_hostile_text_is_masked_at_once(database: Database) -> None:
    time = DatabaseTime(await database.connect())

    used = {name: await time.of("SELECT redact($1)", make(LONG)) for name, make in TEXTS.items()}

    assert {name: seconds for name, seconds in used.items() if seconds > SLOWEST} == {}


async def test_twice_the_text_takes_about_twice_the_time(database: Database) -> None:
    time = DatabaseTime(await database.connect())

    grown = {name: await time.growth("SELECT quoted($1, 500)", make, LOOKED_AT) for name, make in HOSTILE.items()}

    assert {name: times for name, times in grown.items() if times > MOST} == {}


@pytest.mark.parametrize("text", CUT, ids=range(len(CUT)))
async def test_a_secret_that_ends_behind_what_is_looked_at_is_not_shown_in_part(database: Database, text: str) -> None:
    shown: str = await database.pool.fetchval("SELECT quoted($1, 500)", text)

    assert "hush" not in shown
