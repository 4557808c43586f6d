"""The log grows on disk, not in memory: a million entries with AUTOPOST_FULL=1, a tenth of them otherwise."""

import asyncio
import json
import sys
from pathlib import Path

import pytest
from harness.full import FULL

pytestmark = pytest.mark.time_limit(480)

ENTRIES = 1_000_000 if FULL else 100_000
WARM = 20_000
ROOM = 4 * 1024 * 1024

WRITER = """
import json, resource, sys
from pathlib import Path
from autopost_simulator.clock import SystemClock
from autopost_simulator.exchange import CallHandler
from autopost_simulator.faults import Faults
from autopost_simulator.journal import Journal
from autopost_simulator.log_query import LogQuery, LogReader
from autopost_simulator.reply import accepted

path, warm, entries = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
journal = Journal(path)
exchange = CallHandler(SystemClock(), Faults(), journal)

def fill(until):
    while journal.last < until:
        call = exchange.arrive("telegram", "1001:telegram-token", "sendMessage")
        call.chat, call.text = "-1001000000001", f"post {journal.last}"
        exchange.obey(call, lambda: accepted({"ok": True}))

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

def read_everything():
    reader, lines = LogReader(LogQuery.of({"after": "0"}), journal), 0
    while reader.position < journal.last:
        lines += reader.take().count(b"\\n")
    return lines

fill(warm)
before = peak()
fill(entries)
read = read_everything()
print(json.dumps({"read": read, "peak_before": before, "peak_after": peak()}))
"""


async def test_memory_stays_where_it_was_while_the_log_grows(log_file: Path):
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", WRITER, str(log_file), str(WARM), str(ENTRIES), stdout=asyncio.subprocess.PIPE
    )
    said, _ = await process.communicate()
    measured = json.loads(said)

    assert measured["read"] == ENTRIES
    assert measured["peak_after"] - measured["peak_before"] < ROOM, measured
