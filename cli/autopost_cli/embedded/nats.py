"""An embedded NATS server with JetStream."""

import asyncio
from pathlib import Path

from autopost_cli.embedded.places import program
from autopost_cli.embedded.ports import HOST
from autopost_cli.embedded.processes import Process
from autopost_cli.embedded.program import Server

ASK_JETSTREAM = b'CONNECT {"verbose":false}\r\nSUB _INBOX.ready 1\r\nPUB $JS.API.INFO _INBOX.ready 0\r\n\r\n'


class NatsServer(Server):
    def __init__(
        self, data: Path, *, port: int | None = None, monitoring_port: int | None = None, log: Path | None = None
    ) -> None:
        super().__init__("nats", data, port, log)
        self.monitoring_port = monitoring_port

    @property
    def url(self) -> str:
        return f"nats://{HOST}:{self.port}"

    async def _spawn(self) -> Process:
        self.data.mkdir(parents=True, exist_ok=True)
        monitoring = ["-m", str(self.monitoring_port)] if self.monitoring_port else []
        where = ["-sd", str(self.data), "-a", HOST, "-p", str(self.port)]
        return Process.start(self.name, [program("nats-server"), "-js", *where, *monitoring], log=self.log)

    async def answers(self) -> bool:
        """True when JetStream answers, not only the port."""
        try:
            async with asyncio.timeout(1):
                return await self._ask_jetstream()
        except (OSError, TimeoutError):
            return False

    async def _ask_jetstream(self) -> bool:
        reader, writer = await asyncio.open_connection(HOST, self.port)
        try:
            writer.write(ASK_JETSTREAM)
            while line := await reader.readline():
                if line.startswith(b"MSG _INBOX.ready"):
                    return b'"memory"' in await reader.readline()
            return False
        finally:
            writer.close()
