"""How much processor time and memory processes have used: of the bench, of what it started, of Postgres. From /proc."""

import os
from collections.abc import Collection, Iterator
from pathlib import Path

TICK = os.sysconf("SC_CLK_TCK")


def used(*roots: int) -> float:
    """Seconds of these processes, of this one, and of all their children, also of those that have ended."""
    times = dict(_all())
    wanted = {os.getpid(), *roots}
    while more := {pid for pid, (parent, _) in times.items() if parent in wanted} - wanted:
        wanted |= more
    return sum(seconds for pid, (_, seconds) in times.items() if pid in wanted)


def of(processes: Collection[int]) -> float:
    """Seconds of these alone."""
    return sum(seconds for pid, (_, seconds) in _all() if pid in processes)


def resident(process: int) -> int:
    """Bytes of memory that it has now."""
    return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _all() -> Iterator[tuple[int, tuple[int, float]]]:
    """By process: its parent, and its time with that of its ended children."""
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:  # it has ended meanwhile
                continue
            yield int(folder.name), (int(fields[1]), sum(map(int, fields[11:15])) / TICK)
