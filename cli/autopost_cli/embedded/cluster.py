"""Create a Postgres data folder, and choose the account that runs Postgres.

Under root everything here runs as another account, which may have no access to
the folders above the data (such as /root). So it gets the folder as an open
descriptor, and a path through /proc to it.
"""

import contextlib
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from autopost_cli.embedded.places import postgres_programs, run_as
from autopost_cli.embedded.processes import Account, BackendError

SUPERUSER = "postgres"
OPTIONS = ["-U", SUPERUSER, "-A", "trust", "-E", "UTF8", "--no-instructions"]
LOCALE = {18: ["--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C"], 16: ["--locale=C"]}


def account_for(data: Path) -> Account | None:
    """Under root: the owner of an existing cluster, else ``nobody``. ``None``: the current account."""
    if os.geteuid() != 0:
        return None
    if (data / "PG_VERSION").exists() and data.stat().st_uid != 0:
        return Account.owner_of(data)
    return Account.nobody()


@contextlib.contextmanager
def opened(data: Path, account: Account | None) -> Iterator[tuple[int, str]]:
    """A descriptor for the child process, and the path by which ``account`` reaches the folder."""
    descriptor = os.open(data, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield descriptor, f"/proc/self/fd/{descriptor}" if account and sys.platform == "linux" else str(data)
    finally:
        os.close(descriptor)


def make_cluster(data: Path, major: int, account: Account | None, *, synced: bool) -> None:
    """Does nothing if the cluster exists.

    It is not copied from a template: each cluster needs its own system identifier.
    """
    if (data / "PG_VERSION").exists():
        return
    if data.exists() and any(data.iterdir()):
        raise BackendError(f"{data} is neither empty nor a Postgres data folder; choose another folder")
    unfinished = data.with_name(f"{data.name}.new")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(mode=0o700, parents=True)
    if account:
        os.chown(unfinished, account.uid, account.gid)
    _initdb(unfinished, major, account, synced=synced)
    unfinished.rename(data)


def _initdb(data: Path, major: int, account: Account | None, *, synced: bool) -> None:
    options = [*OPTIONS, *LOCALE[major], *([] if synced else ["--no-sync"])]
    with opened(data, account) as (descriptor, path):
        command: list[str | Path] = [postgres_programs(major, account) / "initdb", "-D", path, *options]
        made = run_as(account, command, pass_fds=[descriptor])
    if made.returncode != 0:
        raise BackendError(f"initdb failed:\n{made.stderr or made.stdout}")
