"""The pool against a real Postgres: its settings, its errors, and a network that goes dead."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import asyncpg
import msgspec
import pytest
from autopost_runtime.lifecycle.service import Service, Stopping
from autopost_runtime.postgres.errors import is_of_the_database
from autopost_runtime.postgres.pool import (
    NotConnected,
    is_retryable,
    may_have_committed,
    open_database,
    retrying,
)
from harness.eventually import eventually
from runtime.support.frozen_proxy import Freezer


class Pair(msgspec.Struct):
    left: int
    right: str


@pytest.fixture
async def frozen_wire(empty_database) -> AsyncIterator[Freezer]:
    async with Freezer(empty_database.url).running() as freezer:
        yield freezer


async def test_a_session_is_set_up_as_every_service_needs_it(empty_database, configure):
    config = configure(database_url=empty_database.url, command_timeout=timedelta(seconds=10))

    async with open_database(config, "ingest") as database:
        rows = await database.fetch("SELECT name, current_setting(name) AS value FROM pg_settings")

    settings = {row["name"]: row["value"] for row in rows}
    assert settings["application_name"] == "autopost-ingest"
    assert settings["statement_timeout"] == "9s"
    assert settings["lock_timeout"] == "5s"
    assert settings["idle_in_transaction_session_timeout"] == "30s"
    assert settings["TimeZone"] == "UTC"
    assert settings["jit"] == "off"


async def test_the_role_of_the_service_holds_on_a_reused_connection(empty_database, configure):
    config = configure(database_url=empty_database.url, database_role="pg_monitor", database_pool=1)

    async with open_database(config, "monitor") as database:
        roles = [await database.fetchval("SELECT current_user") for _ in range(2)]

    assert roles == ["pg_monitor", "pg_monitor"]


async def test_a_call_is_one_round_trip(empty_database, configure):
    """What a session was last asked for is what we asked it for."""
    config = configure(database_url=empty_database.url, database_pool=1)

    async with open_database(config, "ingest") as database:
        await database.fetchval("SELECT 'ours'")
        [last] = await empty_database.pool.fetch(
            "SELECT query FROM pg_stat_activity "
            "WHERE datname = current_database() AND application_name = 'autopost-ingest'"
        )

    assert last["query"] == "SELECT 'ours'"


async def test_calls_on_one_connection_are_on_one_and_others_are_not_kept_from_theirs(empty_database, configure):
    config = configure(database_url=empty_database.url, database_pool=2)

    async with open_database(config, "ingest") as database:
        async with database.on_one_connection() as held:
            held_by = {await held.fetchval("SELECT pg_backend_pid()") for _ in range(3)}
            others = await database.fetchval("SELECT pg_backend_pid()")
            taken = [held.all_taken]
            async with database.acquire():
                taken += [held.all_taken]
        taken += [database.all_taken]

    assert len(held_by) == 1
    assert others not in held_by
    assert taken == [False, True, False]


async def test_a_transaction_that_was_left_open_is_rolled_back_before_the_next_one_has_the_connection(
    empty_database, configure
):
    config = configure(database_url=empty_database.url, database_pool=1)

    async with open_database(config, "ingest") as database:
        async with database.acquire() as connection:
            await connection.execute("BEGIN; CREATE TABLE left_behind ()")
        found = await database.fetchval("SELECT to_regclass('left_behind')")

    assert found is None


async def test_jsonb_goes_in_and_out_as_values(empty_database, configure):
    value = {"text": "привет", "list": [1, 2.5, None, True]}

    async with open_database(configure(database_url=empty_database.url), "test") as database:
        assert await database.fetchval("SELECT $1::jsonb", value) == value
        assert await database.fetchval("SELECT $1::json", value) == value
        assert await database.fetchval("SELECT $1::jsonb", Pair(1, "x")) == {"left": 1, "right": "x"}
        assert await database.fetchval("SELECT $1::jsonb ->> 'left'", Pair(1, "x")) == "1"


@pytest.mark.parametrize("number", ["1e400", "-1e5000", "1e-5000", "9" * 6000])
async def test_a_number_that_is_too_long_does_not_fail_the_rows_beside_it(empty_database, configure, number):
    query = "SELECT jsonb_build_object('n', $1::text::numeric) AS odd UNION ALL SELECT '{\"n\": 1}'"

    async with open_database(configure(database_url=empty_database.url), "test") as database:
        rows = await database.fetch(query, number)

    assert rows[1]["odd"] == {"n": 1}


async def test_a_slow_statement_is_ended_by_the_server_and_certainly_did_nothing(empty_database, configure):
    config = configure(database_url=empty_database.url, command_timeout=timedelta(seconds=30), database_pool=1)

    async with open_database(config, "test") as database:
        await database.execute("SET statement_timeout = '200ms'")  # the server's limit, far shorter than the client's
        with pytest.raises(asyncpg.QueryCanceledError) as failed:
            await database.execute("SELECT pg_sleep(60)")

    assert is_retryable(failed.value)
    assert not may_have_committed(failed.value)


async def test_a_dead_network_is_noticed_and_survived(frozen_wire, configure):
    config = configure(database_url=frozen_wire.url, command_timeout=timedelta(seconds=3), database_pool=1)

    async with open_database(config, "test") as database:
        assert await database.fetchval("SELECT 1") == 1
        await eventually(lambda: _pings(database))
        frozen_wire.freeze()

        async with asyncio.timeout(5.8):  # asking the dead connection to cancel would take twice the limit
            with pytest.raises(TimeoutError) as failed:
                await database.fetchval("SELECT 1")
        async with asyncio.timeout(20):
            with pytest.raises(NotConnected):
                await database.fetchval("SELECT 1")
        async with asyncio.timeout(20):
            with pytest.raises(TimeoutError):
                await database.ping()

        frozen_wire.thaw()
        assert await eventually(lambda: _answers(database)) == 1
        await eventually(lambda: _pings(database))

    assert is_retryable(failed.value)
    assert may_have_committed(failed.value)


async def test_a_held_connection_that_went_dead_is_not_given_back(frozen_wire, configure):
    config = configure(database_url=frozen_wire.url, command_timeout=timedelta(seconds=1), database_pool=1)

    async with open_database(config, "test") as database:
        async with database.on_one_connection() as held:
            frozen_wire.freeze()
            with pytest.raises(TimeoutError):
                await held.fetchval("SELECT 1")
        frozen_wire.thaw()

        assert await eventually(lambda: _answers(database)) == 1


async def _answers(database):
    try:
        return await database.fetchval("SELECT 1")
    except (NotConnected, TimeoutError):
        return None


async def _pings(database):
    try:
        await database.ping()
    except TimeoutError:
        return False
    return True


async def test_a_full_pool_is_busy_and_not_away(empty_database, configure):
    config = configure(database_url=empty_database.url, command_timeout=timedelta(milliseconds=500), database_pool=1)

    async with open_database(config, "test") as database, database.acquire():
        with pytest.raises(NotConnected) as failed:
            await database.fetchval("SELECT 1")
        await eventually(lambda: _pings(database))

    assert is_retryable(failed.value)
    assert not may_have_committed(failed.value)


async def test_a_restart_is_retryable_and_the_pool_comes_back(own_cluster, configure):
    config = configure(database_url=own_cluster.url(), command_timeout=timedelta(minutes=1))

    async with open_database(config, "test") as database:
        running = asyncio.create_task(database.fetchval("SELECT pg_sleep(60)"))
        other = await asyncpg.connect(own_cluster.url())
        await eventually(lambda: _sleeping(other))
        await other.close()
        await own_cluster.stop()
        with pytest.raises((asyncpg.PostgresError, asyncpg.InterfaceError, OSError)) as during:
            await running
        with pytest.raises(NotConnected) as while_down:
            await database.fetchval("SELECT 1")
        await own_cluster.start()

        assert await retrying(lambda: database.fetchval("SELECT 1"), repeatable=True) == 1

    assert is_retryable(during.value)
    assert may_have_committed(during.value)
    assert is_retryable(while_down.value)
    assert not may_have_committed(while_down.value)


async def _sleeping(connection):
    return await connection.fetchval("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'")


async def test_a_connection_that_the_server_closed_while_idle_is_lost_and_nothing_was_sent(
    frozen_wire, empty_database, configure
):
    """asyncpg has read the server's last words by then, and reports a state it cannot leave."""
    frozen_wire.hides_the_end = True
    config = configure(database_url=frozen_wire.url, database_pool=1)
    failures: list[Exception] = []

    async def closed_while_idle() -> bool:
        backend = await retrying(lambda: database.fetchval("SELECT pg_backend_pid()"), repeatable=True)
        await empty_database.pool.fetchval("SELECT pg_terminate_backend($1, 10000)", backend)
        try:
            await database.fetchval("SELECT 1")
        except Exception as exc:
            failures.append(exc)
        return any(isinstance(exc, asyncpg.InternalClientError) for exc in failures)

    async with open_database(config, "test") as database:
        await eventually(closed_while_idle)
        afterwards = await database.fetchval("SELECT 1")

    lost = next(exc for exc in failures if isinstance(exc, asyncpg.InternalClientError))
    assert "cannot switch to state" in str(lost)
    assert (is_retryable(lost), may_have_committed(lost)) == (True, False)
    assert all(is_retryable(exc) for exc in failures)
    assert afterwards == 1


@pytest.mark.parametrize(
    ("exc", "reused"),
    [
        (asyncpg.InternalClientError("cannot switch to state 12; another operation (2) is in progress"), False),
        (TimeoutError(), False),
        (asyncpg.UniqueViolationError("twin"), True),
        (ValueError("ours"), True),
    ],
)
async def test_a_connection_in_an_unknown_state_is_never_used_again(empty_database, configure, exc, reused):
    """Its driver has not noticed: the connection is open, and the next call would fail or read the answer of this."""
    config = configure(database_url=empty_database.url, database_pool=1)

    async with open_database(config, "test") as database:
        before = await database.fetchval("SELECT pg_backend_pid()")
        with pytest.raises(type(exc)):
            async with database.acquire():
                raise exc
        after = await database.fetchval("SELECT pg_backend_pid()")

    assert (after == before) is reused


async def test_start_waits_for_a_database_that_is_still_away(own_cluster, configure):
    await own_cluster.stop()
    opened = asyncio.Event()

    async def use():
        async with open_database(configure(database_url=own_cluster.url()), "test") as database:
            opened.set()
            return await database.fetchval("SELECT 1")

    using = asyncio.create_task(use())
    await own_cluster.start()

    assert await using == 1
    assert opened.is_set()


async def test_waiting_for_the_database_ends_when_the_service_stops(configure, unused_tcp_port):
    service = Service("test")
    config = configure(database_url=f"postgresql://nobody@127.0.0.1:{unused_tcp_port}/none")
    asyncio.get_running_loop().call_soon(service.stop)

    with pytest.raises(Stopping):
        async with open_database(config, service):
            pass


@pytest.mark.parametrize(
    ("exc", "retryable", "unknown"),
    [
        (ConnectionRefusedError(), True, False),
        (ConnectionResetError(), True, True),
        (TimeoutError(), True, True),
        (asyncpg.ConnectionDoesNotExistError("lost"), True, True),
        (asyncpg.ConnectionFailureError("lost"), True, True),
        (asyncpg.InterfaceError("connection is closed"), True, True),
        (asyncpg.InternalClientError('cannot switch to state 12; protocol is in the "failed" state'), True, False),
        (asyncpg.InternalClientError('cannot switch to "idle" state; protocol is in the "failed" state'), True, True),
        (asyncpg.InternalClientError("not connected"), True, False),
        (asyncpg.InternalClientError("cannot switch to state 12; another operation (2) is in progress"), True, False),
        (asyncpg.ProtocolError("a torn answer"), True, True),
        (asyncpg.CannotConnectNowError("starting up"), True, False),
        (asyncpg.TooManyConnectionsError("full"), True, False),
        (asyncpg.AdminShutdownError("terminating"), True, True),
        (asyncpg.CrashShutdownError("terminating"), True, True),
        (asyncpg.SerializationError("again"), True, False),
        (asyncpg.DeadlockDetectedError("again"), True, False),
        (asyncpg.LockNotAvailableError("again"), True, False),
        (asyncpg.DiskFullError("no room"), True, False),
        (asyncpg.OutOfMemoryError("no room"), True, False),
        (asyncpg.ConfigurationLimitExceededError("no room"), True, False),
        (asyncpg.ReadOnlySQLTransactionError("a standby"), True, False),
        (asyncpg.PostgresIOError("a broken disk"), True, False),
        (asyncpg.IdleInTransactionSessionTimeoutError("too late"), True, False),
        (asyncpg.UniqueViolationError("twice"), False, False),
        (asyncpg.InvalidPasswordError("no"), False, False),
        (asyncpg.exceptions.DataError("not a number"), False, False),
        (asyncpg.InterfaceError("the server expects 1 argument for this query, 2 were passed"), False, False),
        (ValueError(), False, False),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_every_error_says_whether_to_retry_and_whether_it_may_have_happened(exc, retryable, unknown):
    assert (is_retryable(exc), may_have_committed(exc)) == (retryable, unknown)


@pytest.mark.parametrize(
    ("exc", "of_the_database"),
    [
        (asyncpg.ForeignKeyViolationError("gone"), True),
        (asyncpg.InsufficientPrivilegeError("not yours"), True),
        (NotConnected(asyncpg.InvalidPasswordError("no")), True),
        (ConnectionResetError(), True),
        (asyncpg.InterfaceError("the server expects 1 argument for this query, 2 were passed"), False),
        (KeyError("b"), False),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_what_the_database_says_is_told_from_mistakes_of_ours(exc, of_the_database):
    assert is_of_the_database(exc) == of_the_database


class Failing:
    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.calls = 0

    async def __call__(self) -> int:
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)
        return self.calls


async def test_what_certainly_did_not_happen_is_called_again():
    call = Failing(asyncpg.SerializationError("again"), NotConnected(ConnectionRefusedError()))

    assert await retrying(call) == 3


async def test_what_may_have_happened_is_not_called_again_unasked():
    lost = asyncpg.ConnectionDoesNotExistError("lost")

    with pytest.raises(asyncpg.ConnectionDoesNotExistError):
        await retrying(call := Failing(lost))
    assert call.calls == 1
    assert await retrying(Failing(lost), repeatable=True) == 2


async def test_retrying_gives_up_after_its_attempts_and_on_what_will_not_change():
    with pytest.raises(asyncpg.DeadlockDetectedError):
        await retrying(call := Failing(*[asyncpg.DeadlockDetectedError("again")] * 9), attempts=3)
    assert call.calls == 3

    with pytest.raises(asyncpg.UniqueViolationError):
        await retrying(call := Failing(asyncpg.UniqueViolationError("twice")))
    assert call.calls == 1
