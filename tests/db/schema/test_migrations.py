"""`migrate up`: all or nothing, safe from several places, and able to tell when it was bypassed."""

import asyncio

import asyncpg
import pytest
from autopost_cli.schema import catalog, schema_files
from autopost_cli.schema.migrations import MigrationError, changed_migrations, migrate_status, migrate_up, refusal
from autopost_cli.schema.schema_files import SchemaFile

GRANTS = [file.name for file in schema_files.grants()]
ALL = [*(file.name for file in [*schema_files.tables(), *schema_files.objects()]), *GRANTS]


async def relations(database) -> int:
    count: int = await database.pool.fetchval(
        "SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace"
    )
    return count


async def test_an_empty_database_is_pending_and_a_migrated_one_is_clean(empty_database):
    before = await migrate_status(empty_database.url)

    applied = await migrate_up(empty_database.url)

    after = await migrate_status(empty_database.url)
    assert (before.applied, before.pending, before.clean) == ([], ["tables"], False)
    assert applied == ALL
    assert (after.applied, after.pending, after.clean) == (["tables"], [], True)


async def test_asking_for_the_status_changes_nothing(empty_database):
    await migrate_status(empty_database.url)

    assert await relations(empty_database) == 0


async def test_migrating_again_applies_nothing(empty_database):
    await migrate_up(empty_database.url)

    again = await migrate_up(empty_database.url)

    assert again == []
    assert (await migrate_status(empty_database.url)).clean


async def test_of_three_that_migrate_at_once_one_does_the_work(empty_database):
    applied = await asyncio.gather(*(migrate_up(empty_database.url) for _ in range(3)))

    assert sorted(applied, key=len) == [[], [], ALL]
    assert (await migrate_status(empty_database.url)).clean


async def test_a_database_of_an_older_development_state_is_refused_in_words(database):
    await database.pool.execute("UPDATE schema_ledger SET checksum = 'of other tables' WHERE name = 'tables'")

    with pytest.raises(MigrationError, match=r"another development version of autopost \(tables.*new, empty database"):
        await migrate_up(database.url)

    status = await migrate_status(database.url)
    assert (status.changed, status.clean) == (["tables"], False)


async def test_a_migration_whose_file_is_gone_is_refused_by_its_name(database):
    await database.pool.execute("INSERT INTO schema_ledger (name, checksum) VALUES ('migrations/0000_gone.sql', '')")

    with pytest.raises(MigrationError, match=r"migrations/0000_gone\.sql"):
        await migrate_up(database.url)


def test_a_migration_that_was_edited_after_it_was_applied_is_named():
    kept, edited = SchemaFile("migrations/0001_a.sql", "SELECT 1"), SchemaFile("migrations/0002_b.sql", "SELECT 2")
    pending = SchemaFile("migrations/0003_c.sql", "SELECT 3")
    recorded = {"tables": "any", kept.name: kept.checksum, edited.name: "of an older text"}

    assert changed_migrations(recorded, [kept, edited, pending]) == [edited.name]


def test_after_a_release_the_refusal_says_to_restore_the_file():
    assert refusal(["migrations/0002_b.sql"], released=True).startswith("migrations/0002_b.sql: changed or removed")
    assert "new, empty database" not in refusal(["migrations/0002_b.sql"], released=True)


async def test_a_function_with_a_new_text_is_applied_again_and_nothing_else(database):
    name = schema_files.function("slot_gate").name
    await database.pool.execute("UPDATE schema_ledger SET checksum = 'of an older text' WHERE name = $1", name)
    outdated = (await migrate_status(database.url)).outdated

    applied = await migrate_up(database.url)

    assert outdated == [name]
    assert applied == [name, *GRANTS]
    assert (await migrate_status(database.url)).clean


CHANGED_BY_HAND = {
    "a function": "CREATE OR REPLACE FUNCTION rate_step(p_rate_rps numeric) RETURNS interval LANGUAGE sql IMMUTABLE "
    "PARALLEL SAFE AS $$ SELECT interval '0' $$",
    "a column": "ALTER TABLE channels ADD COLUMN extra text",
    "a default": "ALTER TABLE channels ALTER COLUMN max_parallel SET DEFAULT 2",
    "a constraint": "ALTER TABLE channels DROP CONSTRAINT one_channel_per_destination",
    "an index": "DROP INDEX deliveries_by_message",
    "a trigger": "DROP TRIGGER deliveries_after_update ON deliveries",
    "a trigger that was switched off": "ALTER TABLE deliveries DISABLE TRIGGER deliveries_after_update",
    "a grant on a table": "GRANT SELECT ON channels TO autopost_reader",
    "a grant on a function": "GRANT EXECUTE ON FUNCTION queue_depth() TO PUBLIC",
    "a view": "CREATE VIEW extra AS SELECT 1 AS one",
    "an action": "ALTER TYPE event_action ADD VALUE 'extra'",
}


async def test_what_was_changed_by_hand_is_seen(database):
    """The digest that a status compares, after each change alone."""
    connection = await database.connect()
    untouched = await catalog.digest(connection)
    unseen = []

    for name, statement in CHANGED_BY_HAND.items():
        change = connection.transaction()
        await change.start()
        await connection.execute(statement)
        if await catalog.digest(connection) == untouched:
            unseen.append(name)
        await change.rollback()

    assert unseen == []


async def test_a_drifted_database_is_not_clean(database):
    assert (await migrate_status(database.url)).clean

    await database.pool.execute(CHANGED_BY_HAND["a function"])

    status = await migrate_status(database.url)
    assert (status.drifted, status.clean) == (True, False)


async def test_a_new_partition_is_no_drift(database):
    await database.pool.execute("SELECT ensure_event_partitions('90 days')")

    assert (await migrate_status(database.url)).clean


async def test_a_file_that_fails_leaves_nothing_behind(empty_database):
    await empty_database.pool.execute("CREATE TABLE publications ()")

    with pytest.raises(MigrationError, match=r"tables/130_publications\.sql.*nothing was applied"):
        await migrate_up(empty_database.url)

    assert await relations(empty_database) == 1


async def test_partitions_reach_thirty_days_ahead(database):
    connection = await database.connect()
    await connection.execute("INSERT INTO workspaces (name) VALUES ('test')")

    await connection.execute(
        "INSERT INTO events (workspace_id, ts, action) "
        "SELECT workspace_id, clock_timestamp() + day * interval '1 day', 'checkpoint' "
        "FROM workspaces, generate_series(0, 30) AS day"
    )

    with pytest.raises(asyncpg.CheckViolationError, match="no partition"):
        await connection.execute(
            "INSERT INTO events (workspace_id, ts, action) "
            "SELECT workspace_id, clock_timestamp() + interval '60 days', 'checkpoint' FROM workspaces"
        )
