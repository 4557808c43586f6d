"""What the machine itself can do: commits of a one-row UPDATE by primary key, by pgbench."""

import asyncio
import re

from autopost_cli.bench.arena import Arena, BenchError
from autopost_cli.bench.figures import Figures

SCRIPT = "\\set aid random(1, 100000)\nUPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid = :aid;\n"
CLIENTS = (1, 32)


async def measure(arena: Arena, figures: Figures) -> None:
    arena.say("bare commits")
    script = arena.folder / "one_row.sql"
    script.write_text(SCRIPT)
    async with arena.database() as url:
        await _pgbench(arena, "--initialize", "--quiet", "--scale=1", url)
        for clients in CLIENTS:
            told = await _pgbench(
                *(arena, "--no-vacuum", "--protocol=prepared", f"--file={script}"),
                *(f"--client={clients}", f"--jobs={min(clients, 2)}", f"--time={arena.counts.anchor.seconds}", url),
            )
            figures.record(f"commits.{clients}_clients", _tps(told))


async def _pgbench(arena: Arena, *arguments: str) -> str:
    process = await asyncio.create_subprocess_exec(
        arena.programs / "pgbench", *arguments, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
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
