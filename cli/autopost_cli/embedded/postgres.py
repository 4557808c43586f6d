"""An embedded PostgreSQL server on 127.0.0.1 and a unix socket."""

import asyncio
import os
import signal
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

import asyncpg

from autopost_cli.embedded.cluster import SUPERUSER, account_for, make_cluster, opened
from autopost_cli.embedded.places import postgres_programs, socket_folder
from autopost_cli.embedded.ports import HOST
from autopost_cli.embedded.processes import BackendError, Process
from autopost_cli.embedded.program import Server

DURABLE = {"max_connections": "100", "shared_buffers": "64MB"}
FAST = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "autovacuum": "off",
    "max_connections": "300",
    "shared_buffers": "128MB",
}
ALWAYS = {"listen_addresses": HOST, "timezone": "UTC", "log_timezone": "UTC", "jit": "off", "log_checkpoints": "off"}

STILL_LOCKED = ('lock file "postmaster.pid" already exists', "pre-existing shared memory block")


class PostgresServer(Server):
    """``settings`` is ``DURABLE`` or ``FAST``, optionally with more settings of postgresql.conf."""

    dies_by = signal.SIGQUIT  # after SIGKILL its children would run on for a while
    shutdown = ((signal.SIGINT, timedelta(seconds=5)), (signal.SIGQUIT, timedelta(seconds=2)))  # fast, then immediate

    def __init__(
        self,
        data: Path,
        *,
        port: int | None = None,
        settings: Mapping[str, str] = DURABLE,
        log: Path | None = None,
        major: int = 18,
    ) -> None:
        super().__init__("postgres", data, port, log)
        self._major = major
        self._settings = {**ALWAYS, **settings, "port": str(self.port)}

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://{SUPERUSER}@{HOST}:{self.port}/{database}"

    async def start(self) -> None:
        """Retries while a killed predecessor still locks the data; only Postgres knows when that ends."""
        deadline = asyncio.get_running_loop().time() + self.ready_within.total_seconds()
        while True:
            try:
                return await super().start()
            except BackendError as error:
                if asyncio.get_running_loop().time() > deadline or not any(sign in str(error) for sign in STILL_LOCKED):
                    raise
            await asyncio.sleep(0.05)

    async def _spawn(self) -> Process:
        account = account_for(self.data)
        synced = self._settings.get("fsync") != "off"
        await asyncio.to_thread(make_cluster, self.data, self._major, account, synced=synced)
        settings = {**self._settings, "unix_socket_directories": str(socket_folder(account))}
        with opened(self.data, account) as (descriptor, path):
            return Process.start(
                self.name,
                [
                    *(postgres_programs(self._major, account) / "postgres", "-D", path),
                    *(word for name, value in settings.items() for word in ("-c", f"{name}={value}")),
                ],
                log=self.log,
                env={"PATH": os.defpath, "LC_ALL": "C"},
                account=account,
                pass_fds=[descriptor],
                dies_by=self.dies_by,
            )

    async def answers(self) -> bool:
        try:
            connection = await asyncpg.connect(self.url(), timeout=5)
        except (OSError, asyncpg.PostgresConnectionError, asyncpg.CannotConnectNowError, TimeoutError):
            return False
        try:
            return bool(await connection.fetchval("SELECT TRUE"))
        finally:
            await connection.close()
