"""What an operator sees of the services: metrics, readiness, and a refusal to start on nonsense."""

import asyncio
import os
import signal
import sys
import time
from asyncio.subprocess import PIPE, create_subprocess_exec
from datetime import timedelta

import httpx
import msgspec
import pytest
from harness.eventually import eventually
from harness.http_client import http_client

from e2e.conftest import StartSystem

SERVICES = ("ingest", "dispatcher", "monitor", "bot")


async def test_metrics_show_depth_latencies_and_refusals(start_system: StartSystem) -> None:
    system = await start_system(AUTOPOST_SNAPSHOT_INTERVAL="100ms")

    assert (await system.post(text="counted")).status_code == 202
    assert (await system.post(text="counted", secret="wrong")).status_code == 401

    async def all_sent() -> bool:
        return await system.statuses() == {"sent": 40}

    await eventually(all_sent, within=timedelta(minutes=1))
    monitor = await system.metrics("monitor")
    dispatcher = await system.metrics("dispatcher")
    ingest = await system.metrics("ingest")
    assert all(f'autopost_queue_depth{{status="{status}"}}' in monitor for status in ("queued", "sending", "retry"))
    for histogram in ("autopost_claim_seconds", "autopost_commit_seconds", "autopost_provider_call_seconds"):
        assert f"{histogram}_bucket" in dispatcher
    assert "autopost_deliveries_in_flight 0.0" in dispatcher
    assert 'autopost_ingress_refusals_total{reason="unauthorized"} 1.0' in ingest


async def test_the_bot_is_ready_once_it_reached_the_database_and_hears_its_wakeups(start_system: StartSystem) -> None:
    system = await start_system()

    answer = await system.http.get(f"{system.places['health']['bot']}/readyz")

    assert answer.json()["checks"] == {"begun": "ok", "database": "ok", "wakeups": "ok"}
    assert answer.json()["info"] == {"nats": True}


@pytest.mark.parametrize("service", SERVICES)
@pytest.mark.parametrize(
    ("env", "named"),
    [
        ({}, "AUTOPOST_DATABASE_URL is not set"),
        ({"AUTOPOST_DATABASE_URL": "mysql://x/y"}, "AUTOPOST_DATABASE_URL"),
        ({"AUTOPOST_DATABASE_URL": "postgresql://x/y", "AUTOPOST_POLL_INTERVAL": "soon"}, "AUTOPOST_POLL_INTERVAL"),
        ({"AUTOPOST_DATABASE_URL": "postgresql://x/y", "AUTOPOST_DATABASE_POOL": "0"}, "AUTOPOST_DATABASE_POOL"),
    ],
)
async def test_a_service_refuses_nonsense_and_names_the_variable(service: str, env: dict[str, str], named: str) -> None:
    process = await create_subprocess_exec(
        sys.executable, "-m", f"autopost_{service}", env={"PATH": os.defpath, **env}, stdout=PIPE, stderr=PIPE
    )

    _, errors = await process.communicate()

    assert process.returncode == 2
    assert named in errors.decode()


async def test_up_is_ready_with_one_json_line_and_ends_every_child_on_sigterm() -> None:
    started = time.monotonic()
    process = await create_subprocess_exec(
        *(sys.executable, "-m", "autopost_cli", "up", "--json"), stdout=PIPE, stderr=PIPE, env={"PATH": os.defpath}
    )
    assert process.stdout is not None
    assert process.stderr is not None
    drained = asyncio.create_task(process.stderr.read())
    places = msgspec.json.decode(await process.stdout.readline())
    ready_after = time.monotonic() - started

    process.send_signal(signal.SIGTERM)
    told = time.monotonic()
    code = await process.wait()

    assert code == 0
    assert time.monotonic() - told < 20  # the promise of both is 10 s on an idle machine; tests share theirs
    assert ready_after < 60
    async with http_client() as http:
        for name in ("ingest", "bot", "monitor", "dispatcher", "simulator", "s3_url"):
            with pytest.raises(httpx.ConnectError):
                await http.get(places[name])
    assert b"Traceback" not in await drained
