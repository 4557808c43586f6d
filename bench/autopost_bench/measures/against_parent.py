"""This checkout and another one, an earlier commit: what a lone tenant gets of each.

They take turns, each in a process and on a server of its own, so that what disturbs the machine disturbs both.
"""

import asyncio
import json
from pathlib import Path

from autopost_bench.machine.server import BenchError, BenchServer
from autopost_bench.measures import compared
from autopost_bench.report.figures import Figures

HERE = Path(__file__).resolve().parents[3]
PROGRAM = Path(compared.__file__)
UNITS = {"noop": "per second", "http": "per second", "call": "milliseconds"}


async def measure(server: BenchServer, figures: Figures) -> None:
    """Nothing without ``--parent``."""
    if server.parent is None:
        return
    sides = {"own": HERE, "parent": server.parent}
    for repetition in range(server.counts.parent_repetitions):
        for name in sides if repetition % 2 else reversed(sides):
            server.say(f"a lone tenant, {'this checkout' if name == 'own' else sides[name]}")
            for figure, value in (await _found(server, sides[name])).items():
                figures.record(f"tenants.{name}.{figure}", value, UNITS[figure])


async def _found(server: BenchServer, checkout: Path) -> dict[str, float]:
    counts = map(str, (server.counts.drained, server.counts.called, server.counts.latencies))
    process = await asyncio.create_subprocess_exec(
        *(str(checkout / ".venv/bin/python"), "-P", str(PROGRAM), *counts),
        cwd=checkout,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, complaints = await process.communicate()
    if process.returncode:
        raise BenchError(f"the bench of {checkout} failed: {complaints.decode()[-2000:]}")
    found: dict[str, float] = json.loads(out)
    return found
