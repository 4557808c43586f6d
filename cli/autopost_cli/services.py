"""The four services and the simulator as programs: what starts them, and what environment they get."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from autopost_cli.embedded.ports import HOST
from autopost_cli.embedded.probe import get
from autopost_cli.embedded.processes import Process
from autopost_cli.embedded.program import Program


@dataclass(frozen=True)
class Service:
    """``public``: it has an HTTP port for others beside the one for its health."""

    name: str
    command: tuple[str, ...]
    public: bool

    @classmethod
    def of_package(cls, name: str, *, public: bool) -> "Service":
        return cls(name, (sys.executable, "-m", f"autopost_{name}"), public)


SERVICES = (
    Service.of_package("ingest", public=True),
    Service.of_package("dispatcher", public=False),
    Service.of_package("monitor", public=True),
    Service.of_package("bot", public=True),
)


class ServiceProgram(Program):
    is_service = True

    def __init__(self, service: Service, log: Path, env: Mapping[str, str], port: int | None, health_port: int) -> None:
        super().__init__(service.name, log)
        self._command = service.command
        self.env = dict(env)
        self.url = f"http://{HOST}:{port}" if port else None
        self.health_url = f"http://{HOST}:{health_port}"

    async def answers(self) -> bool:
        return (await get(f"{self.health_url}/readyz", timeout=3) or (0, ""))[0] == 200

    async def _spawn(self) -> Process:
        return Process.start(self.name, self._command, log=self.log, env=self.env)


class SimulatorProgram(Program):
    """Open to every token and chat: what the seed or a user configures is there when first used."""

    def __init__(self, log: Path, port: int, exchanges: Path) -> None:
        super().__init__("simulator", log)
        self._command = [sys.executable, "-m", "autopost_simulator", "--port", str(port), "--open"]
        self._command += ["--log", str(exchanges)]
        self.url = f"http://{HOST}:{port}"

    async def answers(self) -> bool:
        return (await get(f"{self.url}/_sim/health") or (0, ""))[0] == 200

    async def _spawn(self) -> Process:
        return Process.start(self.name, self._command, log=self.log)


def environment(given: Mapping[str, str], decided: Mapping[str, str | None]) -> dict[str, str]:
    """What the user gave, but for what is ``decided``; a part given as a file was read, and its value replaces it."""
    kept = {name: value for name, value in given.items() if name.removesuffix("_FILE") not in decided}
    said = {name: value for name, value in decided.items() if value is not None}
    return {"PYTHONUNBUFFERED": "1", **kept, **said}
