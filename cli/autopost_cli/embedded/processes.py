"""Child processes with their own session and a log file, which end with their parent.

The parent is the *thread* that starts the child: when that thread ends, Linux
kills the child. Start children from a thread that lives long enough.
"""

import asyncio
import contextlib
import ctypes
import os
import pwd
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Self

TAIL = 12
PR_SET_PDEATHSIG = 1
ON_LINUX = sys.platform == "linux"
_libc = ctypes.CDLL(None, use_errno=True) if ON_LINUX else None  # loaded before the fork, where loading is not safe


class BackendError(Exception):
    """A child process failed; the text is for the user."""


@dataclass(frozen=True)
class Account:
    """The account of a child that must not run as root."""

    uid: int
    gid: int

    @classmethod
    def nobody(cls) -> Self:
        entry = pwd.getpwnam("nobody")
        return cls(entry.pw_uid, entry.pw_gid)

    @classmethod
    def owner_of(cls, path: Path) -> Self:
        found = path.stat()
        return cls(found.st_uid, found.st_gid)


def die_with_parent(how: signal.Signals, parent: int) -> Callable[[], None] | None:
    if _libc is None:
        return None
    prctl = _libc.prctl

    def tie() -> None:
        prctl(PR_SET_PDEATHSIG, int(how), 0, 0, 0)
        if os.getppid() != parent:  # the parent died before prctl
            os.kill(os.getpid(), signal.SIGKILL)

    return tie


class Process:
    """One running program, the leader of its own process group."""

    def __init__(self, popen: "subprocess.Popen[bytes]", name: str, log: Path) -> None:
        self._popen = popen
        self.name = name
        self.log = log

    @classmethod
    def start(
        cls,
        name: str,
        command: Sequence[str | Path],
        *,
        log: Path,
        env: Mapping[str, str] | None = None,
        account: Account | None = None,
        pass_fds: Sequence[int] = (),
        dies_by: signal.Signals = signal.SIGKILL,
    ) -> Self:
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as output:
            popen = subprocess.Popen(
                [str(word) for word in command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=env,
                start_new_session=True,
                pass_fds=pass_fds,
                user=account.uid if account else None,
                group=account.gid if account else None,
                extra_groups=[] if account else None,
                preexec_fn=die_with_parent(dies_by, os.getpid()),
            )
        return cls(popen, name, log)

    @property
    def pid(self) -> int:
        return self._popen.pid

    @property
    def exit_code(self) -> int | None:
        """``None`` while it runs; negative for a signal."""
        before = self._popen.returncode
        code = self._popen.poll()
        if before is None and code is not None:
            self.kill_group()
        return code

    def send(self, number: signal.Signals) -> None:
        self._popen.send_signal(number)

    async def exited(self) -> int:
        while (code := self.exit_code) is None:
            await _end_of(self.pid)
        return code

    async def end(self, *steps: tuple[signal.Signals, timedelta]) -> int:
        """Send each signal and wait; then kill the process with all its children."""
        for number, patience in steps:
            self.send(number)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(patience.total_seconds()):
                    return await self.exited()
        self.kill_group()
        return await self.exited()

    def tail(self) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-TAIL:])

    def kill_group(self, number: signal.Signals = signal.SIGKILL) -> None:
        """Signal the process and all its children."""
        with contextlib.suppress(ProcessLookupError, PermissionError):  # macOS reports EPERM for a group of zombies
            os.killpg(self.pid, number)


async def _end_of(pid: int) -> None:
    """Returns when the process may have ended; the caller checks again."""
    if sys.platform != "linux":
        await asyncio.sleep(0.02)
        return
    descriptor = os.pidfd_open(pid)
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    loop.add_reader(descriptor, ended.set)
    try:
        await ended.wait()
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)


async def await_ready(process: Process, probe: Callable[[], Awaitable[bool]], within: timedelta) -> None:
    """Call ``probe`` until it returns true, the process ends, or the time is over."""
    deadline = asyncio.get_running_loop().time() + within.total_seconds()
    pause = 0.01
    while not await probe():
        if (code := process.exit_code) is not None:
            raise BackendError(f"{process.name} exited with code {code} before it was ready:\n{process.tail()}")
        if asyncio.get_running_loop().time() > deadline:
            raise BackendError(f"{process.name} was not ready after {within.total_seconds():g} s:\n{process.tail()}")
        await asyncio.sleep(pause)
        pause = min(pause * 1.5, 0.1)
