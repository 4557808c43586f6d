"""Each operation of the runbook, as SQL and as a command, on two equal databases: the same rows and the same events."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import MAXYEAR, UTC, datetime, timedelta
from typing import Any, NamedTuple
from urllib.parse import urlsplit
from uuid import UUID

import pytest
from autopost_cli.embedded.places import postgres_programs
from autopost_cli.schema import schema_files
from db.support.builders import Tenant, permanent, transient
from harness.autopost_command import Autopost, Ran
from harness.databases import Database, cloned

SIGNED = {"operator": "ann", "reason": "it's odd"}
FLAGS = ("--operator", "ann", "--reason", "it's odd")
TABLES = {
    "deliveries": "delivery_id",
    "delivery_queue": "delivery_id",
    "dead_letters": "delivery_id",
    "channels": "channel_id",
    "channel_auth": "channel_id",
    "channel_counters": "channel_id, side",
    "channel_due": "channel_id",
    "platform_limits": "platform, rate_group",
    "events": "seq",
}
PRIVATE = {"id", "seq", "xid"}
"""Of an event: its own, and of a dry run before it."""
GRAIN = timedelta(seconds=10)


class Scene(NamedTuple):
    """Something for every operation to work on."""

    url: str
    workspace: UUID
    failing: UUID
    message: UUID
    dead: UUID
    skipped: UUID
    refused: UUID
    held: UUID
    waiting: UUID
    paused: UUID
    disabled: UUID
    times: frozenset[datetime]
    """All there are: what an operation makes is another."""


async def set_up(database: Database) -> Scene:
    tenant = await Tenant.create(database.pool)
    await _refused_with_their_channel(tenant, 3)
    failing = await tenant.channel(title="Failing", rate_group="a")
    dead = [await _ended(tenant, failing, transient) for _ in range(2)]
    refused = await _ended(tenant, failing, permanent)
    await tenant.channel(title="Held", rate_group="a", on_ambiguous="hold")
    held = await _ended(tenant, None, lambda claim: transient(claim, ambiguous=True), title="Held")
    paused = await tenant.channel(title="Paused", rate_group="b", catch_up={"policy": "newest", "keep": 1})
    disabled = await tenant.channel(title="Disabled", rate_group="c")
    waiting = await tenant.channel(title="Waiting", rate_group="b")
    for channel in (paused, paused, waiting, disabled):
        await tenant.enqueue(routing={"channels": [str(channel)]})
    await tenant.set_channel(paused, "paused_until = 'infinity'")
    await tenant.set_channel(disabled, "enabled = false, error_streak = 3")
    await tenant.claim(lease=timedelta(seconds=0))  # the one of `waiting`: a lease that is over
    await tenant.db.execute("UPDATE channel_counters SET total = total + 1 WHERE channel_id = $1", failing)
    await tenant.db.execute("UPDATE channel_counters SET total = 0 WHERE side = 'ended' AND channel_id = $1", failing)
    times = frozenset(await _times(database))
    message = (await tenant.delivery(dead[0]))["message_id"]
    named = (failing, message, *dead, refused, held, waiting, paused, disabled)
    return Scene(database.url, tenant.workspace, *named, times)


async def _refused_with_their_channel(tenant: Tenant, count: int) -> None:
    """They are older than all else that was given up, and stay where they are until their channel is enabled."""
    gone = await tenant.channel(title="Gone", rate_group="g")
    await tenant.backlog(gone, count)
    await tenant.commit(*(permanent(claim, "channel") for claim in await tenant.claim()))
    await tenant.set_channel(gone, "enabled = false")


async def _ended(tenant: Tenant, channel: UUID | None, ending: Callable[..., Any], title: str = "") -> UUID:
    if channel is None:
        channel = await tenant.db.fetchval("SELECT channel_id FROM channels WHERE title = $1", title)
    await tenant.enqueue(routing={"channels": [str(channel)]}, max_attempts=1)
    claim = await tenant.claim_one()
    await tenant.commit(ending(claim))
    delivery: UUID = claim["delivery_id"]
    return delivery


class Operation(NamedTuple):
    page: int
    variables: Callable[[Scene], dict[str, object]]
    words: Callable[[Scene], tuple[object, ...]]


def one(delivery: UUID) -> str:
    return f"{{{delivery}}}"


OPERATIONS = {
    "3 requeue what is dead": Operation(
        3, lambda s: {"delivery_ids": one(s.dead)}, lambda s: ("queue", "requeue", s.dead)
    ),
    "4 requeue what was refused": Operation(
        4,
        lambda s: {"delivery_ids": one(s.refused), "attempts": 2},
        lambda s: ("queue", "requeue", s.refused, "--attempts", 2),
    ),
    "5 pause a channel": Operation(
        5,
        lambda s: {"channel_id": s.waiting, "pause_for": "2 hours"},
        lambda s: ("channel", "pause", "Waiting", "--for", "2h"),
    ),
    "6 enable a channel": Operation(
        6, lambda s: {"channel_id": s.disabled}, lambda s: ("channel", "enable", "disabled")
    ),
    "7 disable a group": Operation(
        7,
        lambda s: {"rate_group": "b", "platform": "telegram"},
        lambda s: ("channel", "disable", "--rate-group", "b", "--platform", "telegram"),
    ),
    "8 enable a group": Operation(
        8, lambda s: {"rate_group": "b"}, lambda s: ("channel", "enable", "--rate-group", "b")
    ),
    "9 rotate a credential": Operation(
        9,
        lambda s: {"channel_id": s.disabled, "new_auth_ref": "second", "new_rate_group": "d"},
        lambda s: ("auth", "rotate", s.disabled, "--auth-ref", "second", "--rate-group", "d"),
    ),
    "10 release what is stale": Operation(10, lambda s: {}, lambda s: ("queue", "release")),
    "11 skip what is dead": Operation(
        11, lambda s: {"delivery_ids": one(s.skipped)}, lambda s: ("queue", "skip", s.skipped)
    ),
    "12 resume a channel": Operation(12, lambda s: {"channel_id": s.paused}, lambda s: ("channel", "resume", s.paused)),
    "13 resolve as sent": Operation(
        13,
        lambda s: {"delivery_id": s.held, "decision": "sent", "provider_message_id": "77"},
        lambda s: ("queue", "resolve", s.held, "sent", "--provider-message-id", "77"),
    ),
    "13 resolve by sending again": Operation(
        13,
        lambda s: {"delivery_id": s.held, "decision": "resend"},
        lambda s: ("queue", "resolve", s.held, "resend"),
    ),
    "14 requeue all that matches": Operation(
        14,
        lambda s: {"status": "dead", "code": "boom"},
        lambda s: ("queue", "requeue", "--status", "dead", "--code", "boom", "--yes"),
    ),
    "14 requeue what lies behind as many that are refused": Operation(
        14,
        lambda s: {"status": "", "code": "boom", "limit": 3},
        lambda s: ("queue", "requeue", "--code", "boom", "--batch", 3, "--yes"),
    ),
    "14 requeue a message's in a channel": Operation(
        14,
        lambda s: {"channel_id": s.failing, "message_id": s.message},
        lambda s: ("queue", "requeue", "--channel", "Failing", "--message", s.message, "--yes"),
    ),
}


@pytest.fixture
async def scene(database: Database) -> Scene:
    made = await set_up(database)
    await database.pool.close()  # a database with a connection to it cannot be cloned
    return made


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)
async def test_as_sql_and_as_a_command_it_does_the_same(postgres_url: str, scene: Scene, operation: Operation) -> None:
    async with _equal(postgres_url, scene) as by_sql, _equal(postgres_url, scene) as by_command:
        before = await told(by_sql, scene)
        autopost = Autopost(by_command.url)
        words = (*operation.words(scene), *FLAGS, "--json")

        await paste(by_sql, scene, operation)
        dry = await autopost(*words, "--dry-run")
        after_dry = await told(by_command, scene)
        real = await autopost(*words)

        assert after_dry == before
        assert (dry.code, real.code) == (0, 0), (dry, real)
        assert await told(by_command, scene) == await told(by_sql, scene) != before
        assert _verdicts(dry) == _verdicts(real)


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)
async def test_its_event_says_who_and_why(postgres_url: str, scene: Scene, operation: Operation) -> None:
    async with _equal(postgres_url, scene) as database:
        known = await database.pool.fetchval("SELECT max(seq) FROM events")

        await Autopost(database.url)(*operation.words(scene), *FLAGS)

        written = await database.pool.fetch("SELECT meta FROM events WHERE seq > $1", known)
        metas = [json.loads(row["meta"]) for row in written]
        assert metas
        assert all(meta["operator"] == "ann" for meta in metas)
        assert all("it's odd" in (meta["reason"], meta.get("note")) for meta in metas)


async def test_1_and_2_show_the_same_and_change_nothing(postgres_url: str, scene: Scene) -> None:
    async with _equal(postgres_url, scene) as database:
        before = await told(database, scene)
        autopost = Autopost(database.url)

        pages = [await paste(database, scene, Operation(page, lambda s: {}, lambda s: ())) for page in (1, 2)]
        snapshot, errors = await autopost("queue", "snapshot", "--json"), await autopost("queue", "errors", "--json")

        counts = snapshot.json["workspaces"][0]["counts"]
        assert counts == {"queued": 3, "claimed": 0, "sending": 1, "retry": 1, "dead": 2, "failed_permanent": 4}
        assert all(f'"{status}": {count}' in pages[0] for status, count in counts.items())
        broken = [error["delivery_id"] for error in errors.json["errors"]]
        assert {str(scene.dead), str(scene.refused), str(scene.held)} <= set(broken)
        assert all(str(delivery) in pages[1] for delivery in broken if delivery)
        assert await told(database, scene) == before


@asynccontextmanager
async def _equal(server: str, scene: Scene) -> AsyncIterator[Database]:
    async with cloned(server, urlsplit(scene.url).path.removeprefix("/")) as database:
        yield database


async def paste(database: Database, scene: Scene, operation: Operation) -> str:
    """What psql prints; it must have ended well."""
    [page] = (schema_files.folder() / "runbook").glob(f"{operation.page:02}_*.sql")
    given = {"workspace_id": scene.workspace, **SIGNED, **operation.variables(scene)}
    program = await asyncio.create_subprocess_exec(
        *(postgres_programs(18, None) / "psql", "--no-psqlrc", "--quiet", database.url, "-f", page),
        *(word for name, value in given.items() for word in ("-v", f"{name}={value}")),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    printed, _ = await program.communicate()
    assert program.returncode == 0, printed.decode()
    return printed.decode()


async def told(database: Database, scene: Scene) -> dict[str, list[dict[str, Any]]]:
    """Every row of the queue and every event. Times that are new are told by how far ahead they are."""
    now = await database.pool.fetchval("SELECT clock_timestamp()")
    return {
        table: [
            {name: _plain(name, value, scene.times, now) for name, value in row.items() if name not in PRIVATE}
            for row in await database.pool.fetch(f"SELECT * FROM {table} ORDER BY {key}")
        ]
        for table, key in TABLES.items()
    }


async def _times(database: Database) -> set[datetime]:
    found: set[datetime] = set()
    for table in TABLES:
        for row in await database.pool.fetch(f"SELECT * FROM {table}"):
            values = [_decoded(value) for value in row.values()]
            values += [_decoded(inner) for value in values if isinstance(value, dict) for inner in value.values()]
            found |= {value for value in values if isinstance(value, datetime)}
    return found


def _plain(name: str, value: Any, known: frozenset[datetime], now: datetime) -> Any:
    value = _decoded(value)
    if name == "claim_token":
        return value is not None
    if isinstance(value, datetime):
        return value if value in known or value.year == MAXYEAR else round((value - now) / GRAIN)
    if isinstance(value, dict):
        return {key: _plain(key, inner, known, now) for key, inner in value.items()}
    return value


def _decoded(value: Any) -> Any:
    """What a column or a document holds: a document, or a time that is written as text."""
    if isinstance(value, str) and value.startswith("{"):
        return json.loads(value)
    if isinstance(value, str) and value[:2] == "20" and "T" in value:
        return datetime.fromisoformat(value).astimezone(UTC)
    return value


def _verdicts(ran: Ran) -> object:
    answer = ran.json
    if "results" in answer:
        return [row["verdict"] for row in answer["results"]]
    return answer.get("verdict") or answer["counted"]
