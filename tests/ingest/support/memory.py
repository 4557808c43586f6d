"""Peak memory of a process."""

from pathlib import Path

ALLOWED = 150 * 1024 * 1024


def peak_memory(pid: int | str) -> int:
    """In bytes; ``self`` is this process."""
    told = Path(f"/proc/{pid}/status").read_text()
    return int(told.partition("VmHWM:")[2].split()[0]) * 1024
