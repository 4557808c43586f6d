"""Logins that read: each its own workspace, whatever it sets, and nothing else."""

import json
from collections.abc import AsyncIterator
from uuid import UUID, uuid4

import asyncpg
import pytest
from db.operate.test_payloads import NOTE, failed, ref_in
from db.support.builders import Tenant
from harness.databases import Database

VIEWS = (
    "reader_channels",
    "reader_deliveries",
    "reader_events",
    "reader_messages",
    "reader_quarantine",
    "reader_runs",
)


class Login:
    """A login of this test's own: roles belong to the whole server."""

    def __init__(self, database: Database, *roles: str) -> None:
        self.name = f"reader_{uuid4().hex[:12]}"
        self._database = database
        self._roles = roles

    async def __aenter__(self) -> "Login":
        await self._database.pool.execute(f"CREATE ROLE {self.name} LOGIN IN ROLE {', '.join(self._roles)}")
        self.session = await asyncpg.connect(self._database.url, user=self.name)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.session.close()
        await self._database.pool.execute(f"DROP OWNED BY {self.name}; DROP ROLE {self.name}")

    async def reads(self, tenant: Tenant) -> None:
        await self._database.pool.execute("INSERT INTO reader_logins VALUES ($1, $2)", tenant.workspace, self.name)

    async def seen(self) -> dict[str, set[UUID]]:
        found = {}
        for view in VIEWS:
            rows = await self.session.fetch(f"SELECT DISTINCT workspace_id FROM {view}")
            found[view] = {row["workspace_id"] for row in rows}
        return found

    async def says(self, setting: object) -> None:
        await self.session.execute(f"SET autopost.workspace_id = '{setting}'")


@pytest.fixture
async def tenant(database: Database) -> Tenant:
    return await shown(database)


@pytest.fixture
async def other(database: Database) -> Tenant:
    return await shown(database)


@pytest.fixture
async def reader(database: Database) -> AsyncIterator[Login]:
    async with Login(database, "autopost_reader") as login:
        yield login


async def shown(database: Database) -> Tenant:
    """Has a row in every view."""
    tenant = await Tenant.create(database.pool)
    await tenant.channel()
    await tenant.channel(enabled=False)
    await tenant.enqueue()
    await tenant.db.execute("INSERT INTO ingest_runs (workspace_id, kind) VALUES ($1, 'push')", tenant.workspace)
    return tenant


def everywhere(*tenants: Tenant) -> dict[str, set[UUID]]:
    return {view: {tenant.workspace for tenant in tenants} for view in VIEWS}


async def test_a_login_sees_the_workspace_it_was_given_and_no_other(
    database: Database, reader: Login, tenant: Tenant, other: Tenant
) -> None:
    async with Login(database, "autopost_reader") as stranger:
        await reader.reads(tenant)
        await stranger.reads(other)

        assert (await reader.seen(), await stranger.seen()) == (everywhere(tenant), everywhere(other))


async def test_a_login_that_was_given_none_sees_nothing_whatever_it_sets(
    reader: Login, tenant: Tenant, other: Tenant
) -> None:
    unset = await reader.seen()
    await reader.says(tenant.workspace)

    assert (unset, await reader.seen()) == (everywhere(), everywhere())


async def test_no_setting_shows_a_login_another_workspace(reader: Login, tenant: Tenant, other: Tenant) -> None:
    await reader.reads(tenant)
    [channel] = await other.db.fetch("SELECT channel_id FROM channels WHERE workspace_id = $1 LIMIT 1", other.workspace)

    await reader.says(other.workspace)

    assert await reader.seen() == everywhere()
    assert json.loads(await reader.session.fetchval("SELECT why($1)", str(channel["channel_id"])))["found"] == []


async def test_a_setting_narrows_a_login_of_several_workspaces(reader: Login, tenant: Tenant, other: Tenant) -> None:
    await reader.reads(tenant)
    await reader.reads(other)

    both = await reader.seen()
    await reader.says(other.workspace)

    assert (both, await reader.seen()) == (everywhere(tenant, other), everywhere(other))


@pytest.mark.parametrize("setting", ["nonsense", "00000000-0000-0000-0000-00000000000", "'' OR true"])
async def test_a_setting_that_is_no_workspace_shows_nothing_and_raises_nothing(
    reader: Login, tenant: Tenant, setting: str
) -> None:
    await reader.reads(tenant)

    await reader.says(setting.replace("'", "''"))

    assert await reader.seen() == everywhere()


async def test_on_a_reused_connection_a_setting_of_an_earlier_transaction_is_gone(
    database: Database, tenant: Tenant, other: Tenant
) -> None:
    """Then it is the empty text, no longer null."""
    session = await database.connect()
    await session.execute("SET ROLE autopost_reader")
    count = "SELECT count(*) FROM reader_channels"

    never = await session.fetchval(count)
    async with session.transaction():
        await session.execute(f"SET LOCAL autopost.workspace_id = '{tenant.workspace}'")
        inside = await session.fetchval(count)

    assert await session.fetchval("SELECT current_setting('autopost.workspace_id')") == ""
    assert (never, inside, await session.fetchval(count)) == (0, 2, 0)


async def test_a_condition_of_the_reader_is_not_asked_about_rows_of_others(
    reader: Login, tenant: Tenant, other: Tenant
) -> None:
    """A function of its own would be told of them by its arguments."""
    await reader.reads(tenant)
    await reader.session.execute(
        "CREATE FUNCTION pg_temp.tell(text) RETURNS boolean LANGUAGE plpgsql COST 0.0001 AS "
        "$$ BEGIN RAISE NOTICE 'told %', $1; RETURN true; END $$"
    )
    told: list[str] = []
    reader.session.add_log_listener(lambda _, message: told.append(message.message))

    await reader.session.fetch("SELECT 1 FROM reader_channels WHERE pg_temp.tell(workspace_id::text)")

    assert set(told) == {f"told {tenant.workspace}"}


async def test_a_table_that_was_granted_by_mistake_shows_no_rows(
    database: Database, reader: Login, tenant: Tenant
) -> None:
    await database.pool.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {reader.name}")
    tables = await reader.session.fetch(
        "SELECT oid::regclass::text AS name FROM pg_class "
        "WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND relname <> 'schema_ledger'"
    )

    found = {row["name"] for row in tables if await reader.session.fetchval(f"SELECT count(*) FROM {row['name']}")}

    assert len(tables) > 40
    assert found == set()


async def test_a_partition_that_is_made_later_is_guarded_too(database: Database) -> None:
    await database.pool.fetchval("SELECT ensure_event_partitions('90 days')")

    open_to_all = await database.pool.fetch(
        "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') "
        "AND NOT relrowsecurity AND relname <> 'schema_ledger'"
    )

    assert [row["relname"] for row in open_to_all] == []


async def test_raw_payloads_need_a_role_that_neither_an_operator_nor_a_reader_is(
    database: Database,
) -> None:
    tenant = await Tenant.create(database.pool)
    ref = ref_in(tenant)
    await failed(tenant, ref)
    for role in ("autopost_operator", "autopost_reader"):
        async with Login(database, role) as login:
            await login.reads(tenant)
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await login.session.fetchval(NOTE, tenant.workspace, ref, "ann", "because", None)


async def test_a_login_with_that_role_reads_the_payloads_of_its_own_workspace_alone(
    database: Database,
) -> None:
    tenant, other = await Tenant.create(database.pool), await Tenant.create(database.pool)
    ours, theirs = ref_in(tenant), ref_in(other)
    await failed(tenant, ours)
    await failed(other, theirs)

    async with Login(database, "autopost_payloads") as login:
        await login.reads(tenant)

        async def verdict(workspace: UUID, ref: str) -> str:
            answer = json.loads(await login.session.fetchval(NOTE, workspace, ref, "ann", "because", None))
            return str(answer["verdict"])

        own = await verdict(tenant.workspace, ours)
        foreign = await verdict(other.workspace, theirs)
        await login.says(other.workspace)
        assert (own, foreign, await verdict(other.workspace, theirs)) == ("noted", "not_found", "not_found")
