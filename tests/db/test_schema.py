"""The schema as a reader finds it: `schema.sql` is what the migrations give, `columns.txt` is every column."""

from pathlib import Path

from autopost_cli import catalog, schema_files

COLUMNS = """
SELECT format('%s.%s %s%s%s', c.table_name, c.column_name,
              CASE c.data_type WHEN 'ARRAY' THEN ltrim(c.udt_name, '_') || '[]'
                               WHEN 'USER-DEFINED' THEN c.udt_name
                               ELSE c.data_type END,
              CASE WHEN c.is_nullable = 'NO' THEN ' not null' ELSE '' END,
              CASE WHEN c.is_generated = 'ALWAYS' THEN ' generated ' || c.generation_expression
                   WHEN c.column_default IS NOT NULL THEN ' default ' || c.column_default
                   ELSE '' END)
FROM information_schema.columns c
JOIN pg_class r ON r.oid = format('public.%I', c.table_name)::regclass
WHERE c.table_schema = 'public' AND r.relkind IN ('r', 'p') AND NOT r.relispartition AND c.table_name <> 'schema_ledger'
"""

SERVICE_TABLES = {
    *("dispatcher_state", "forgotten", "guard_walks", "monitor_rounds", "relay_marks", "relay_state", "schema_ledger"),
    "status_tokens",  # the operator's belong to no workspace
}
ACROSS_WORKSPACES = {
    "one_enabled_endpoint_per_secret": "the secret is what tells the workspace",
    "one_workspace_per_bot": "a bot's token is refused in a second one",
}


async def test_schema_sql_gives_exactly_what_the_migrations_give(database, empty_database):
    await empty_database.pool.execute(schema_files.schema())

    async with database.pool.acquire() as migrated, empty_database.pool.acquire() as loaded:
        assert await catalog.describe(loaded) == await catalog.describe(migrated)


async def test_schema_sql_names_every_file(database):
    text = (schema_files.folder() / "schema.sql").read_text()
    included = [line.split()[1] for line in text.splitlines() if line.startswith("\\ir ")]

    assert included == [file.name for file in [*schema_files.objects(), *schema_files.grants()]]


async def test_every_column_is_as_transcribed(database):
    transcribed = Path(__file__).with_name("columns.txt").read_text().splitlines()

    found = [row[0] for row in await database.pool.fetch(COLUMNS)]

    assert sorted(found) == sorted(transcribed)


async def test_no_migration_repeats_a_function():
    """They are applied again when they change; a copy in a migration would come back on a fresh database."""
    text = "".join(file.text for file in schema_files.migrations())

    assert text.count("CREATE OR REPLACE") == 0


async def test_every_key_starts_with_the_workspace(database):
    rows = await database.pool.fetch(
        """
        SELECT c.relname, a.attname
        FROM pg_constraint k
        JOIN pg_class c ON c.oid = k.conrelid
        JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.conkey[1]
        WHERE k.contype = 'p' AND c.relnamespace = 'public'::regnamespace AND NOT c.relispartition
        """
    )

    others = {row["relname"] for row in rows if row["attname"] != "workspace_id"}
    assert others == SERVICE_TABLES


async def test_every_unique_index_has_the_workspace_in_it(database):
    rows = await database.pool.fetch(
        """
        SELECT c.relname AS table_name, i.relname AS index_name
        FROM pg_index x
        JOIN pg_class c ON c.oid = x.indrelid
        JOIN pg_class i ON i.oid = x.indexrelid
        WHERE x.indisunique AND c.relnamespace = 'public'::regnamespace AND NOT c.relispartition
          AND NOT EXISTS (
              SELECT 1
              FROM pg_attribute a
              WHERE a.attrelid = c.oid AND a.attname = 'workspace_id' AND a.attnum = ANY (x.indkey)
          )
        """
    )

    assert {row["table_name"] for row in rows} - SERVICE_TABLES == {"credential_bindings", "workspace_endpoints"}
    assert {row["index_name"] for row in rows if row["table_name"] not in SERVICE_TABLES} == set(ACROSS_WORKSPACES)


async def test_every_foreign_key_stays_in_its_workspace(database):
    """By the same column on both sides, so nothing can refer to what another tenant has."""
    rows = await database.pool.fetch(
        """
        SELECT k.conrelid::regclass::text AS table_name, k.conname
        FROM pg_constraint k
        WHERE k.contype = 'f' AND k.connamespace = 'public'::regnamespace
          AND NOT EXISTS (
              SELECT 1
              FROM unnest(k.conkey, k.confkey) AS pair (mine, theirs)
              JOIN pg_attribute m ON m.attrelid = k.conrelid AND m.attnum = pair.mine
              JOIN pg_attribute t ON t.attrelid = k.confrelid AND t.attnum = pair.theirs
              WHERE m.attname = 'workspace_id' AND t.attname = 'workspace_id'
          )
        """
    )

    assert [tuple(row) for row in rows] == []


async def test_every_table_of_tenants_names_its_workspace(database):
    rows = await database.pool.fetch(
        """
        SELECT c.relname
        FROM pg_class c
        WHERE c.relkind IN ('r', 'p') AND c.relnamespace = 'public'::regnamespace AND NOT c.relispartition
          AND NOT EXISTS (
              SELECT 1
              FROM pg_attribute a
              WHERE a.attrelid = c.oid AND a.attname = 'workspace_id' AND a.attnotnull
          )
        """
    )

    assert {row["relname"] for row in rows} == SERVICE_TABLES
