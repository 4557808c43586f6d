"""`autopost why` as an operator runs it: the gate in words, and a command that works when it is typed."""

import os
import shlex
import sys
from asyncio.subprocess import PIPE, create_subprocess_exec
from collections.abc import AsyncIterator
from typing import Any, NamedTuple
from uuid import UUID, uuid4

import msgspec
import pytest
from db.support.builders import Tenant, sent, transient
from db.support.operators import Operator, dead, held
from harness.databases import Database


class Ran(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        decoded: dict[str, Any] = msgspec.json.decode(self.out)
        return decoded


class Autopost:
    def __init__(self, database: Database) -> None:
        self.env = {"PATH": os.defpath, "AUTOPOST_DATABASE_URL": database.url, "AUTOPOST_OPERATOR": "ann"}

    async def __call__(self, *words: str) -> Ran:
        process = await create_subprocess_exec(
            *(sys.executable, "-m", "autopost_cli", *words), env=self.env, stdout=PIPE, stderr=PIPE
        )
        out, err = await process.communicate()
        return Ran(process.returncode or 0, out.decode(), err.decode())

    async def gate(self, subject: UUID) -> dict[str, Any]:
        [found] = (await self("why", str(subject), "--json")).json["found"]
        gate: dict[str, Any] = found["gate"]
        return gate


@pytest.fixture
async def tenant(database: Database) -> AsyncIterator[Tenant]:
    yield await Tenant.create(database.pool)


@pytest.fixture
def operator(tenant: Tenant) -> Operator:
    return Operator(tenant)


@pytest.fixture
def autopost(database: Database) -> Autopost:
    return Autopost(database)


async def test_the_gate_is_told_in_words_with_since_until_and_the_command(
    autopost: Autopost, tenant: Tenant, operator: Operator
) -> None:
    channel = await tenant.channel(title="News\x1b[31m", target_id="-100")
    [delivery] = await tenant.backlog(channel, 1)
    await operator.pause(channel)

    ran = await autopost("why", str(delivery))

    assert (ran.code, ran.err) == (0, "")
    told = [" ".join(line.split()) for line in ran.out.splitlines()]
    assert told[0] == f"delivery {delivery}: queued, attempt 0 of 5"
    assert told[1] == f"to telegram News [31m (-100), {channel}"
    assert "\x1b" not in ran.out
    [holding] = [line for line in told if line.startswith("held by")]
    assert holding.startswith("held by channel_paused, since 20")
    assert "(in 59 min" in holding
    assert "because operator: ann, reason: because" in told
    assert f"release autopost channel resume {channel} --workspace {tenant.workspace} --reason '…'" in told
    assert any(line.startswith("history") and "channel_paused" in line for line in told)


@pytest.mark.parametrize("gate", ["channel_paused", "channel_disabled", "hold", "lease"])
async def test_the_command_that_is_named_opens_the_gate_when_it_is_typed(
    autopost: Autopost, tenant: Tenant, operator: Operator, gate: str
) -> None:
    delivery = (await held(tenant))["delivery_id"]
    channel = (await tenant.delivery(delivery))["channel_id"]
    if gate == "channel_paused":
        await operator.pause(channel)
    elif gate == "channel_disabled":
        await operator.disable(channel)
    elif gate == "lease":
        await operator.resolve(delivery, "resend")
        await tenant.claim()
        await tenant.set_delivery(delivery, "sending_lease_until = clock_timestamp() - interval '1 s'")
    told = await autopost.gate(delivery)

    program, *words = shlex.split(told["command"])
    ran = await autopost(*words)

    assert (told["gate"], program, ran.code) == (gate, "autopost", 0), ran.err
    assert (await autopost.gate(delivery))["gate"] != gate


async def test_what_died_comes_back_by_the_command_that_is_named(autopost: Autopost, tenant: Tenant) -> None:
    [delivery] = await dead(tenant, await tenant.channel())

    told = await autopost("why", str(delivery))
    [found] = (await autopost("why", str(delivery), "--json")).json["found"]
    ran = await autopost(*shlex.split(found["ended"]["command"])[1:])

    assert "ended       dead" in told.out
    assert "code: boom" in told.out
    assert (ran.code, (await autopost.gate(delivery))["gate"]) == (0, "queued_behind")


async def test_a_message_lists_its_channels_and_all_of_them_when_asked(
    autopost: Autopost, tenant: Tenant, operator: Operator
) -> None:
    for channel in await tenant.channels(24, title="free"):
        last = channel
    await tenant.channel(title="filtered", route_filter={"include_any": ["sport"]})
    message = (await tenant.enqueue("hello", source_ref="item 7"))["message_id"]
    await operator.pause(last)
    claims = await tenant.claim(2)
    await tenant.commit(sent(claims[0]), transient(claims[1], code="http_502", retry_after_ms=3_600_000))

    short, full = await autopost("why", message), await autopost("why", "item 7", "--all")

    assert short.code == full.code == 0
    assert "deliveries 24, posted 1×" in short.out
    for state in ("1 queued: channel_paused", "1 retry: retry_backoff", "21 queued: queued_behind", "1 sent: sent"):
        assert state in " ".join(short.out.split())
    assert "… and 4 more deliveries; --all shows them" in short.out
    assert "telegram filtered: include_any" in short.out
    assert "--all" not in full.out
    [begun, *_] = [line for line in full.out.splitlines() if line.startswith("  history")]
    assert "ingested" in begun
    assert "enqueue ×24" in full.out
    assert sum(line.endswith("  free") for line in full.out.splitlines()) == 24


async def test_a_channel_and_a_staged_post_are_told_in_words(autopost: Autopost, tenant: Tenant) -> None:
    channel = await tenant.channel(title="News")
    await tenant.backlog(channel, 3)
    endpoint = await tenant.db.fetchval(
        "INSERT INTO workspace_endpoints (workspace_id, kind, secret_hash) "
        "VALUES ($1, 'webhook_push', repeat('a', 64)) RETURNING endpoint_id",
        tenant.workspace,
    )
    post = await tenant.db.fetchval(
        "INSERT INTO staged_posts (workspace_id, endpoint_id, run_id, request, last_error, attempt) "
        "VALUES ($1, $2, gen_random_uuid(), $3, $4, 2) RETURNING post_id",
        *(tenant.workspace, endpoint, '{"media": [{"type": "image", "url": "https://a.example/canary"}]}'),
        '{"code": "http_503", "field": "media[0].url"}',
    )

    of_channel, of_post = await autopost("why", str(channel)), await autopost("why", str(post))

    assert "(" in of_channel.out.splitlines()[0]
    assert of_channel.out.splitlines()[0].endswith(": open")
    assert "3 waiting, 0 later, 0 held, 0 sending" in of_channel.out
    assert "staged_media" in of_post.out
    assert "type: image, host: a.example, state: waiting, error: http_503" in of_post.out
    assert "canary" not in of_post.out


async def test_an_unknown_id_exits_with_1_and_says_what_is_understood(autopost: Autopost, tenant: Tenant) -> None:
    plain, as_json = await autopost("why", "42"), await autopost("why", str(uuid4()), "--json")

    assert (plain.code, plain.out) == (1, "")
    assert "Nothing found for '42'" in plain.err
    assert "a trace id" in plain.err
    assert (as_json.code, as_json.json["found"]) == (1, [])


async def test_a_workspace_that_is_named_is_the_only_one_looked_into(autopost: Autopost, tenant: Tenant) -> None:
    channel = await tenant.channel()
    neighbour = await Tenant.create(tenant.db)

    here = await autopost("why", str(channel), "--workspace", str(tenant.workspace))
    there = await autopost("why", str(channel), "--workspace", str(neighbour.workspace))

    assert (here.code, there.code) == (0, 1)


async def test_without_a_dispatcher_what_is_next_in_line_says_so(autopost: Autopost, tenant: Tenant) -> None:
    [delivery] = await tenant.backlog(await tenant.channel(), 1)

    ran = await autopost("why", str(delivery))

    assert "queued_behind: 0 deliveries before it in its channel" in ran.out
    assert "no dispatcher has claimed in this workspace so far" in ran.out
