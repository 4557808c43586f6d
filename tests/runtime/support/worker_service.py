"""A service with a worker process, to be killed."""

import asyncio
import sys
from datetime import timedelta
from pathlib import Path

from autopost_runtime.workers.worker_process import WorkerProcesses
from runtime.support.worker_calls import Sum, add, spin


async def main(call: str, path: str) -> None:
    async with WorkerProcesses(1, cpu=timedelta(seconds=1)) as workers:
        if call == "spin":
            await workers.run(spin, path, holder="a")
        _note(path, (await workers.run(add, Sum(()), holder="a")).pid)
        await asyncio.Event().wait()


def _note(path: str, pid: int) -> None:
    Path(path).write_text(str(pid))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
