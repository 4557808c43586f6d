"""Many histories, some at a time, until one fails; and how a failure is made small."""

import asyncio
import time
from dataclasses import dataclass, field

from db.model.history import History, generate
from db.model.machine import Lane, Machine
from db.model.queue_model import Violation

DRAINED = 4
"""One in so many is followed to the end of every delivery."""
SHRINKING_TAKES = 30.0


@dataclass
class Tally:
    histories: int = 0
    steps: int = 0
    waits: int = 0
    failures: list[tuple[History, Violation]] = field(default_factory=list)


async def run_one(lane: Lane, history: History, tally: Tally) -> Violation | None:
    machine = Machine(lane, history)
    try:
        await machine.run(drain=history.seed // 4 % DRAINED == 0)
    except Violation as violation:
        return violation
    finally:
        tally.histories += 1
        tally.steps += machine.steps
        tally.waits += machine.waits
    return None


async def run_all(url: str, seeds: list[int], *, lanes: int = 2, shrink: bool = True) -> Tally:
    """Stops at the first failure, and makes it small."""
    tally = Tally()
    waiting = iter(seeds)

    async def work() -> None:
        lane = await Lane.open(url)
        try:
            for seed in waiting:
                if tally.failures:
                    return
                history = generate(seed)
                if violation := await run_one(lane, history, tally):
                    tally.failures.append((history, violation))
                    if shrink:
                        tally.failures[-1] = await shrunk(lane, history, violation)
        finally:
            await lane.close()

    async with asyncio.TaskGroup() as group:
        for _ in range(lanes):
            group.create_task(work())
    return tally


async def shrunk(lane: Lane, history: History, violation: Violation) -> tuple[History, Violation]:
    """Leaves out what the same violation does not need."""
    deadline = time.monotonic() + SHRINKING_TAKES
    chunk = len(history.steps) // 2
    while chunk and time.monotonic() < deadline:
        place = 0
        while place < len(history.steps) and time.monotonic() < deadline:
            fewer = history._replace(steps=history.steps[:place] + history.steps[place + chunk :])
            again = await run_one(lane, fewer, Tally())
            if again and again.invariant == violation.invariant:
                history, violation = fewer, again
            else:
                place += chunk
        chunk //= 2
    return history, violation
