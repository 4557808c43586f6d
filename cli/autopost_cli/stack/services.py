"""The four services and the simulator as programs: their commands and environments."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from autopost_cli.embedded.ports import HOST
from autopost_cli.embedded.probe import get
from autopost_cli.embedded.processes import Process
from autopost_cli.embedded.program import Program


@dataclass(frozen=True)
class ServiceSpec:
    """``public``: it has a public HTTP port in addition to the one for its health."""

    name: str
    command: tuple[str, ...]
    public: bool

    @classmethod
    def of_package(cls, name: str, *, public: bool) -> "ServiceSpec":
        return cls(name, (sys.executable, "-m", f"autopost_{name}"), public)


SERVICES = (
    ServiceSpec.of_package("ingest", public=True),
    ServiceSpec.of_package("dispatcher", public=False),
    ServiceSpec.of_package("monitor", public=True),
    ServiceSpec.of_package("bot", public=True),
)


class ServiceProgram(Program):
    is_service = True

    def __init__(
        self, service: ServiceSpec, log: Path, env: Mapping[str, str], port: int | None, health_port: int
    ) -> None:
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
    """Accepts every token and chat and creates them at first use."""

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
    """The user's environment, overridden by ``decided``; a decided value also replaces the ``_FILE`` variable."""
    kept = {name: value for name, value in given.items() if name.removesuffix("_FILE") not in decided}
    said = {name: value for name, value in decided.items() if value is not None}
    return {"PYTHONUNBUFFERED": "1", **kept, **said}
