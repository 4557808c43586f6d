"""Data folders, each locked by one process, and temporary folders that are removed at the end."""

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from autopost_cli.embedded.processes import BackendError

LOCK = "lock"


class FolderInUseError(BackendError):
    def __init__(self, folder: Path, holder: str) -> None:
        super().__init__(f"{folder} is in use by process {holder or '?'}; stop that process or choose another folder")


@contextlib.contextmanager
def held(folder: Path) -> Iterator[Path]:
    """Locked until the block or the process ends."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / LOCK).open("a+") as lock:
        _take(lock, folder)
        yield folder


def _take(lock: IO[str], folder: Path) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.seek(0)
        raise FolderInUseError(folder, lock.read()) from None
    lock.truncate(0)
    lock.write(str(os.getpid()))
    lock.flush()


@contextlib.contextmanager
def scratch(prefix: str, root: Path) -> Iterator[Path]:
    """A temporary folder. Also removes those that killed processes left."""
    _sweep(prefix, root)
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=root))
    try:
        with held(folder):
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def kept_or_scratch(asked: Path | None, prefix: str) -> contextlib.AbstractContextManager[Path]:
    return held(asked.absolute()) if asked else scratch(prefix, Path(tempfile.gettempdir()))


def emptied(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    for file in folder.iterdir():
        file.unlink()
    return folder


def _sweep(prefix: str, root: Path) -> None:
    for folder in root.glob(f"{prefix}*"):
        with contextlib.suppress(OSError, FolderInUseError):
            if folder.stat().st_uid == os.geteuid() and (folder / LOCK).exists():  # no lock yet: being made
                with held(folder):
                    shutil.rmtree(folder)
