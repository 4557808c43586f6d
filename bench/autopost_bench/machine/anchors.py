"""What the machine itself can do: commits of a one-row UPDATE by primary key, by pgbench."""

import asyncio
import re

from autopost_bench.machine.server import BenchError, BenchServer
from autopost_bench.report.figures import Figures

SCRIPT = "\\set aid random(1, 100000)\nUPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid = :aid;\n"
CLIENTS = (1, 32)


async def measure(server: BenchServer, figures: Figures, beside: str = "") -> None:
    """``beside``: what begins the names of the figures, where another subject needs its own."""
    server.say("bare commits")
    script = server.folder / "one_row.sql"
    script.write_text(SCRIPT)
    async with server.database() as url:
        await _pgbench(server, "--initialize", "--quiet", "--scale=1", url)
        for clients in CLIENTS:
            told = await _pgbench(
                *(server, "--no-vacuum", "--protocol=prepared", f"--file={script}"),
                *(f"--client={clients}", f"--jobs={min(clients, 2)}", f"--time={server.counts.anchor.seconds}", url),
            )
            figures.record(f"{beside}commits.{clients}_clients", _tps(told))


async def _pgbench(server: BenchServer, *arguments: str) -> str:
    process = await asyncio.create_subprocess_exec(
        server.programs / "pgbench", *arguments, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    told, complaint = await process.communicate()
    if process.returncode:
        raise BenchError(f"pgbench: {complaint.decode()}")
    return told.decode()


def _tps(told: str) -> float:
    """Without the time that connecting took."""
    found = re.search(r"^tps = ([\d.]+) \(without", told, re.MULTILINE)
    if not found:
        raise BenchError(f"pgbench said no tps: {told}")
    return float(found[1])
