"""The services with a NATS server that trusts nobody: each with its own user, least permissions and TLS."""

import asyncio
import os
import sys
from asyncio.subprocess import create_subprocess_exec
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from pathlib import Path

import httpx
import nats.errors
import pytest
from autopost_cli.development import PUSH_SECRET, WORKSPACE
from autopost_cli.embedded.folders import scratch
from autopost_cli.embedded.ports import free_port
from harness.backends import scratch_root
from harness.databases import Database
from harness.eventually import eventually
from harness.guarded_nats import EXAMPLE, GuardedNats
from harness.http_client import http_client

MINUTE = timedelta(minutes=1)
SERVICES = ("ingest", "dispatcher", "monitor", "bot")
VIOLATIONS = "\nautopost_nats_permission_violations_total "


@pytest.fixture(params=[False, True], ids=["tls", "mutual tls"])
async def server(request: pytest.FixtureRequest) -> AsyncIterator[GuardedNats]:
    async with guarded(mutual=request.param) as server:
        yield server


@asynccontextmanager
async def guarded(*, mutual: bool = False, config: Path = EXAMPLE) -> AsyncIterator[GuardedNats]:
    with scratch("autopost-test-", scratch_root()) as folder:
        async with GuardedNats(folder, mutual=mutual, config=config) as server:
            yield server


class Running:
    def __init__(self, health: int, http: int, log: Path) -> None:
        self.health, self.http, self.log = f"http://127.0.0.1:{health}", f"http://127.0.0.1:{http}", log

    async def metrics(self) -> str:
        async with http_client() as http:
            return (await http.get(f"{self.health}/metrics")).text

    async def is_ready(self) -> bool:
        try:
            async with http_client() as http:
                answer = await http.get(f"{self.health}/readyz")
        except httpx.TransportError:
            return False
        return answer.status_code == 200 and answer.json()["info"]["nats"] is True


@asynccontextmanager
async def running(service: str, database: Database, env: dict[str, str], folder: Path) -> AsyncIterator[Running]:
    """Polls so seldom that only a wakeup can have told it of anything."""
    made = Running(health := free_port(), http := free_port(), folder / f"{service}.log")
    settings = {
        "PATH": os.defpath,
        "AUTOPOST_DATABASE_URL": database.url,
        "AUTOPOST_HEALTH_PORT": str(health),
        "AUTOPOST_HTTP_PORT": str(http),
        "AUTOPOST_POLL_INTERVAL": "1h",
        "AUTOPOST_TELEGRAM_API_URL": "http://127.0.0.1:1",
        "AUTOPOST_MAX_API_URL": "http://127.0.0.1:1",
        **env,
    }
    with made.log.open("w") as out:
        process = await create_subprocess_exec(sys.executable, "-m", f"autopost_{service}", env=settings, stdout=out)
    try:
        yield made
    finally:
        process.terminate()
        assert await process.wait() == 0


async def test_every_service_does_its_work_with_its_own_permissions_and_none_is_denied(
    seeded_database: Database, server: GuardedNats, tmp_path: Path
) -> None:
    async with AsyncExitStack() as stack:
        services = {
            name: await stack.enter_async_context(running(name, seeded_database, server.env(name), tmp_path))
            for name in SERVICES
        }
        for service in services.values():
            await eventually(service.is_ready, within=MINUTE)

        async with http_client() as http:
            headers = {"Authorization": f"Bearer {PUSH_SECRET}"}
            answer = await http.post(f"{services['ingest'].http}/v1/posts", headers=headers, json={"text": "hello"})

        async def is_woken() -> bool:
            return bool(
                await seeded_database.pool.fetchval("SELECT count(*) FROM events WHERE action = 'send_attempt'")
            )

        async def is_relayed() -> bool:
            client = await server.connect("monitor")
            try:
                info = await client.jetstream().stream_info("AUDIT")
            finally:
                await client.close()
            return info.state.messages > 0

        assert answer.status_code == 202
        await eventually(is_woken, within=MINUTE)
        await eventually(is_relayed, within=MINUTE)
        assert b"send_attempt" in await told(server)
        for name, service in services.items():
            assert VIOLATIONS not in await service.metrics(), service.log.read_text()
            assert "nats.permission_violation" not in service.log.read_text(), name


async def told(server: GuardedNats) -> bytes:
    """What an operator reads of the stream."""
    process = await create_subprocess_exec(
        *(sys.executable, "-m", "autopost_cli", "events", "tail", "--no-follow", "--json", "--since", "1h"),
        env={"PATH": os.defpath, **server.env("operator")},
        stdout=asyncio.subprocess.PIPE,
    )
    out, _ = await process.communicate()
    assert process.returncode == 0
    return out


FOREIGN_PUBLISH = {
    "ingest": (f"autopost.audit.{WORKSPACE}.sent", "$JS.API.STREAM.DELETE.COMMANDS", "$JS.API.STREAM.DELETE.AUDIT"),
    "dispatcher": (f"autopost.audit.{WORKSPACE}.sent", "$JS.API.STREAM.DELETE.WAKEUPS", "$JS.API.STREAM.PURGE.AUDIT"),
    "bot": (f"autopost.wakeup.dispatch.{WORKSPACE}", "$JS.API.CONSUMER.MSG.NEXT.WAKEUPS.dispatcher"),
    "monitor": ("$JS.API.CONSUMER.MSG.NEXT.WAKEUPS.dispatcher", "$JS.API.STREAM.DELETE.AUDIT"),
    "operator": (f"autopost.audit.{WORKSPACE}.sent", "$JS.API.STREAM.PURGE.AUDIT", "$JS.API.STREAM.DELETE.AUDIT"),
}
FOREIGN_SUBSCRIBE = ("autopost.>", "_INBOX_monitor.>", ">", "$JS.EVENT.>")


async def test_no_user_publishes_or_hears_what_is_not_its_own() -> None:
    async with guarded() as server:
        for user, subjects in FOREIGN_PUBLISH.items():
            denied: list[str] = []
            client = await server.connect(user, denied)
            foreign = [subject for subject in FOREIGN_SUBSCRIBE if subject != f"_INBOX_{user}.>"]
            for subject in subjects:
                await client.publish(subject, b"{}")
            for subject in foreign:
                await client.subscribe(subject)
            await client.flush()

            expected = {f'to "{subject.lower()}"' for subject in (*subjects, *foreign)}
            await eventually(lambda e=expected, d=denied: e == {one for one in e if any(one in line for line in d)})
            await client.close()


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"AUTOPOST_NATS_PASSWORD": "wrong"}, "nats.refused"),
        ({"AUTOPOST_NATS_USER": "monitor"}, "nats.refused"),
        ({"AUTOPOST_NATS_TLS_CA": ""}, "nats.refused"),
    ],
)
async def test_a_server_that_refuses_us_is_said_plainly_and_the_service_works_without_it(
    seeded_database: Database, tmp_path: Path, wrong: dict[str, str], said: str
) -> None:
    async with (
        guarded() as server,
        running("bot", seeded_database, server.env("bot") | wrong, tmp_path) as bot,
    ):

        async def is_said() -> bool:
            return said in bot.log.read_text()

        await eventually(is_said, within=MINUTE)
        assert "password-of" not in bot.log.read_text()


async def test_a_permission_that_is_missing_is_counted_and_named_and_asked_for_seldom(
    seeded_database: Database, tmp_path: Path
) -> None:
    config = tmp_path / "nats-server.conf"
    config.write_text(EXAMPLE.read_text().replace('"$JS.API.CONSUMER.MSG.NEXT.WAKEUPS.dispatcher", ', ""))

    async with (
        guarded(config=config) as server,
        running("dispatcher", seeded_database, server.env("dispatcher"), tmp_path) as dispatcher,
    ):

        async def is_said() -> bool:
            return "nats.consumer_denied" in dispatcher.log.read_text()

        await eventually(is_said, within=MINUTE)
        assert f"{VIOLATIONS}1.0" in await dispatcher.metrics()
        assert "$js.api.consumer.msg.next.wakeups.dispatcher" in dispatcher.log.read_text()


async def test_a_password_is_never_told_to_a_server_without_tls(seeded_database: Database, tmp_path: Path) -> None:
    heard = bytearray()

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b'INFO {"server_id":"x","version":"2.15.1","max_payload":1048576,"auth_required":true}\r\n')
        heard.extend(await reader.read())
        writer.close()

    listening = await asyncio.start_server(listen, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    env = {
        "AUTOPOST_NATS_URL": f"tls://127.0.0.1:{port}",
        "AUTOPOST_NATS_USER": "bot",
        "AUTOPOST_NATS_PASSWORD": "hunter2",
    }
    async with listening, running("bot", seeded_database, env, tmp_path) as bot:

        async def is_said() -> bool:
            return "nats.refused" in bot.log.read_text()

        await eventually(is_said, within=MINUTE)
    assert b"hunter2" not in heard


@pytest.mark.parametrize(
    ("env", "named"),
    [
        ({"AUTOPOST_NATS_USER": "bot"}, "AUTOPOST_NATS_PASSWORD is not set"),
        ({"AUTOPOST_NATS_TLS_CERT": "/nowhere"}, "AUTOPOST_NATS_TLS_KEY is not set"),
        ({"AUTOPOST_NATS_TLS_CA": "/nowhere"}, "AUTOPOST_NATS_TLS_CA"),
    ],
)
async def test_settings_that_cannot_be_used_are_refused_by_name(
    seeded_database: Database, env: dict[str, str], named: str
) -> None:
    settings = {"PATH": os.defpath, "AUTOPOST_DATABASE_URL": seeded_database.url, **env}
    process = await create_subprocess_exec(
        sys.executable, "-m", "autopost_bot", env=settings, stdout=asyncio.subprocess.PIPE
    )

    out, _ = await process.communicate()

    assert process.returncode == 1
    assert named in out.decode()


async def test_a_stream_that_was_wiped_is_made_anew_by_whoever_needs_it(
    seeded_database: Database, tmp_path: Path
) -> None:
    async with guarded() as server, running("bot", seeded_database, server.env("bot"), tmp_path) as bot:
        await eventually(bot.is_ready, within=MINUTE)
        await server.stop()
        await server.start()

        async def hears_again() -> bool:
            client = await server.connect("bot")
            try:
                await client.jetstream(timeout=1).consumer_info("WAKEUPS", "bot")
            except nats.errors.Error:
                return False
            finally:
                await client.close()
            return True

        await eventually(hears_again, within=MINUTE)
        assert VIOLATIONS not in await bot.metrics()
