"""Programs in other languages that use other people's clients: installed once, run as processes, read line by line.

A client that is missing fails its tests, because a simulator that no foreign client was tried against proves little.
"""

import asyncio
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

NPM = Path(__file__).parent.parent / "simulator" / "npm"
TELEBOT = Path(__file__).parent.parent / "simulator" / "go" / "telebot.go"
TELEBOT_PIN = TELEBOT.with_name("telebot.sha256")
GOPATH = Path("/usr/share/gocode")
"""Where Debian puts Go's libraries."""
TELEBOT_SOURCES = GOPATH / "src/gopkg.in/telebot.v3"
PATIENCE = 120


def npm_packages(config: pytest.Config) -> Path:
    """A folder with the clients of npm in it, made once per lock file."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.fail("node and npm are missing: the clients of npm need them")

    def install(folder: Path) -> None:
        for name in ("package.json", "package-lock.json", ".npmrc"):
            shutil.copy(NPM / name, folder)
        succeed(["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"], folder)

    return installed(config, "npm", (NPM / "package-lock.json").read_bytes(), install)


def telebot_program(config: pytest.Config) -> Path:
    """The program in Go, built once per source."""
    if shutil.which("go") is None or not TELEBOT_SOURCES.is_dir():
        pytest.fail("telebot is missing; .ci/telebot installs it")
    if (sources := telebot_digest()) != TELEBOT_PIN.read_text().strip():
        pytest.fail(f"another telebot is installed; if its tests pass, write {sources} to {TELEBOT_PIN.name}")

    def build(folder: Path) -> None:
        environment = {
            "GOPATH": str(GOPATH),
            "GO111MODULE": "off",
            "GOCACHE": str(folder / "cache"),
            "CGO_ENABLED": "1" if shutil.which("gcc") else "0",  # with it, Debian's library of Go is compiled already
        }
        succeed(["go", "build", "-o", str(folder / "telebot"), str(TELEBOT)], folder, **environment)
        shutil.rmtree(folder / "cache")

    return installed(config, "go", sources.encode() + TELEBOT.read_bytes(), build) / "telebot"


def telebot_digest() -> str:
    """Debian gives no lock file: its telebot is pinned by what is built of it."""
    built = sorted(path for path in TELEBOT_SOURCES.glob("*.go") if not path.name.endswith("_test.go"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in built)).hexdigest()


def installed(config: pytest.Config, kind: str, recipe: bytes, install: Callable[[Path], None]) -> Path:
    """By one worker, while the others wait; elsewhere first, because it may be interrupted."""
    parent = config.cache.mkdir(kind)
    ready = parent / hashlib.sha256(recipe).hexdigest()[:16]
    with (parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not ready.exists():
            with tempfile.TemporaryDirectory(dir=parent) as unfinished:
                install(Path(unfinished))
                Path(unfinished).rename(ready)
                Path(unfinished).mkdir()
    return ready


def succeed(command: list[str], folder: Path, **environment: str) -> None:
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env=os.environ | environment,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
    except subprocess.TimeoutExpired:
        pytest.fail(f"{' '.join(command)} did not end in time")
    if done.returncode:
        pytest.fail(f"{' '.join(command)} failed: {done.stderr.strip()[-500:]}")


@asynccontextmanager
async def running(command: list[str], folder: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=folder,
        env={"PATH": os.environ["PATH"]},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def results(command: list[str], folder: Path) -> dict[str, Any]:
    """What a program of calls prints: a name and a result in each line."""
    async with running(command, folder) as process:
        out, errors = await asyncio.wait_for(process.communicate(), PATIENCE)
        assert process.returncode == 0, errors.decode()
    return dict(json.loads(line) for line in out.decode().splitlines())


@asynccontextmanager
async def bot(command: list[str], folder: Path) -> AsyncIterator[None]:
    """A bot that is ready; at the end it is told to stop and must."""
    async with running(command, folder) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        line = await asyncio.wait_for(process.stdout.readline(), PATIENCE)
        assert line == b"ready\n", (await process.stderr.read()).decode()
        yield
        process.stdin.close()
        assert await asyncio.wait_for(process.wait(), PATIENCE) == 0, (await process.stderr.read()).decode()
