"""The same backends from containers: ``AUTOPOST_TEST_BACKEND=containers``."""

import asyncio
import contextlib
import gc
import warnings
from datetime import timedelta
from typing import Any

import asyncpg
from autopost_cli.embedded.probe import get

from harness.buckets import Bucket, make_bucket
from harness.eventually import eventually

SECRET = "autopost-secret"
START = timedelta(seconds=60)


class NoEngineError(Exception):
    """There may be a docker command and no engine behind it."""


class ContainerBackends:
    def __init__(self) -> None:
        _ping()
        self._running: dict[str, Any] = {}

    async def postgres(self) -> str:
        quick = "-c fsync=off -c synchronous_commit=off -c full_page_writes=off -c max_connections=300"
        server = self._start("postgres:18", 5432, f"postgres {quick}", POSTGRES_HOST_AUTH_METHOD="trust")
        url = f"postgresql://postgres@{server}/postgres"
        await eventually(lambda: _postgres_answers(url), within=START)
        return url

    async def nats(self) -> str:
        server = self._start("nats:2", 4222, "-js")
        await eventually(lambda: _port_answers(server), within=START)
        return f"nats://{server}"

    async def bucket(self) -> Bucket:
        keys = {"MINIO_ROOT_USER": "autopost", "MINIO_ROOT_PASSWORD": SECRET}
        endpoint = f"http://{self._start('minio/minio', 9000, 'server /data', **keys)}"
        await eventually(lambda: _minio_answers(endpoint), within=START)
        return await make_bucket(endpoint, "autopost", SECRET)

    async def stop(self) -> None:
        for container in self._running.values():
            container.stop()

    def _start(self, image: str, port: int, command: str, **env: str) -> str:
        from testcontainers.core.container import DockerContainer  # loaded only where containers are used

        if image not in self._running:
            container = DockerContainer(image).with_exposed_ports(port).with_command(command).with_envs(**env)
            self._running[image] = container.start()
        running = self._running[image]
        return f"{running.get_container_host_ip()}:{running.get_exposed_port(port)}"


def _ping() -> None:
    if reason := _why_no_engine():
        raise NoEngineError(f"AUTOPOST_TEST_BACKEND=containers, but no Docker engine answers: {reason}")


def _why_no_engine() -> str:
    import docker  # type: ignore[import-untyped]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # the client that cannot connect leaves its socket open
        try:
            with contextlib.closing(docker.from_env()) as engine:
                engine.ping()
        except docker.errors.DockerException as error:
            return str(error)
        finally:
            gc.collect()
    return ""


async def _postgres_answers(url: str) -> bool:
    try:
        connection = await asyncpg.connect(url, timeout=5)
    except (OSError, asyncpg.PostgresError, TimeoutError):
        return False
    await connection.close()
    return True


async def _port_answers(server: str) -> bool:
    host, _, port = server.rpartition(":")
    try:
        _, writer = await asyncio.open_connection(host, int(port))
    except OSError:
        return False
    writer.close()
    return True


async def _minio_answers(endpoint: str) -> bool:
    return (await get(f"{endpoint}/minio/health/ready") or (0, ""))[0] == 200
