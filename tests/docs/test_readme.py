"""The shell blocks of the README, and of the page of publications, work as they are pasted.

Blocks run in their order, in one shell, against a real ``autopost up`` on free ports. What takes minutes has a marker
before its block: of ``targets`` only the existence of each target, command and option is checked; ``stack`` is the
command that starts what the others talk to.
"""

import asyncio
import contextlib
import json
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import click
import pytest
from autopost_cli.__main__ import main
from autopost_cli.embedded.places import postgres_programs
from autopost_cli.embedded.ports import free_port
from docs.support.documents import ROOT, read

BLOCK = re.compile(r"(?:^<!-- checked: (?P<marker>\w+) -->\n)?^```sh\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
PORT = re.compile(r"AUTOPOST_\w+_PORT=(?P<port>\d+)")
ASSIGNMENT = re.compile(r"^[A-Z_]+=")
MARKERS = {None, "targets", "stack"}
PUBLICATIONS = "docs/publications.md"


def blocks(marker: str | None, document: str = "README.md") -> list[str]:
    return [block["text"] for block in BLOCK.finditer(read(document)) if block["marker"] == marker]


def commands(text: str) -> list[list[str]]:
    """The words of each line, without comments and variables before the command."""
    lines = [shlex.split(line, comments=True) for line in text.splitlines()]
    return [[word for word in words if not ASSIGNMENT.match(word)] for words in lines if words]


def targets() -> set[str]:
    return set(re.findall(r"^([a-z-]+):", read("Makefile"), re.MULTILINE))


def exists(words: list[str]) -> bool:
    """Whether such a target of make, or such a command of ``autopost`` with these options, is there."""
    match words:
        case ["make", target]:
            return target in targets()
        case ["autopost" | ".venv/bin/autopost", *given]:
            return takes(main, given)
    return False


def takes(command: click.Command, given: list[str]) -> bool:
    """Whether the command, or the command of it that comes next, has all these options."""
    if isinstance(command, click.Group):
        found = command.get_command(click.Context(command), given[0]) if given else None
        return found is not None and takes(found, given[1:])
    known = {option for parameter in command.params for option in parameter.opts}
    return {word for word in given if word.startswith("--")} <= known


def test_every_block_is_run_or_has_a_known_marker() -> None:
    fences = re.findall(r"^```sh$", read("README.md"), re.MULTILINE)
    found = list(BLOCK.finditer(read("README.md")))

    assert len(found) == len(fences)
    assert {block["marker"] for block in found} == MARKERS
    assert len(blocks("stack")) == 1
    assert "checked: " not in BLOCK.sub("", read("README.md"))


def test_what_takes_minutes_is_a_target_or_a_command_that_exists() -> None:
    listed = [words for text in blocks("targets") for words in commands(text)]

    assert len(listed) >= 4
    assert [words for words in listed if not exists(words)] == []


@pytest.mark.parametrize(
    "line",
    ["make nothing", "autopost nothing", "autopost demo --nothing", "autopost dlq nothing", "autopost dlq", "true"],
)
def test_a_target_or_command_that_is_not_there_is_seen(line: str) -> None:
    assert not exists(shlex.split(line))


def test_the_stack_is_started_by_a_target_that_runs_autopost_up() -> None:
    (words,) = commands(blocks("stack")[0])

    assert words == ["make", "run"]
    assert re.search(r"^run:.*\n\t@\$\(BIN\)/autopost up$", read("Makefile"), re.MULTILINE)


def test_the_readme_lists_every_command_of_autopost() -> None:
    listed = read("README.md").split("## The command")[1]

    assert set(re.findall(r"`([a-z]+)`", listed)) == set(main.list_commands(click.Context(main)))


def test_the_readme_has_at_most_120_lines() -> None:
    assert len(read("README.md").splitlines()) <= 120


class Shell:
    """A shell in which blocks of the README are run, with free ports in the place of its own."""

    def __init__(self, ports: dict[str, str], home: Path) -> None:
        self._ports = ports
        self._env = {
            "PATH": os.pathsep.join(
                (str(postgres_programs(18, None)), str(Path(sys.executable).parent), os.environ["PATH"])
            ),
            "HOME": str(home),
            "LANG": "C.UTF-8",
        }

    def translated(self, text: str) -> str:
        for written, free in self._ports.items():
            text = re.sub(rf"(?<=[:=]){written}\b", free, text)
        return text.replace(".venv/bin/", f"{Path(sys.executable).parent}/")

    async def run(self, text: str) -> str:
        ran = await asyncio.to_thread(
            subprocess.run,
            ["bash", "-euo", "pipefail", "-c", self.translated(text)],
            cwd=ROOT,
            env=self._env,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr
        return ran.stdout


@contextlib.asynccontextmanager
async def started(shell: Shell, data: Path) -> AsyncIterator[dict[str, Any]]:
    """``autopost up`` with the variables of the README, until the block is left."""
    words = shlex.split(shell.translated(blocks("stack")[0]))
    given = dict(word.split("=", 1) for word in words if ASSIGNMENT.match(word))
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "autopost_cli", "up", "--json", "--data", str(data)),
        env={"PATH": os.environ["PATH"], **given},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        assert process.stdout
        yield json.loads(await process.stdout.readline())
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGINT)
        await process.wait()


def test_every_block_of_the_page_of_publications_is_run_or_names_commands_that_exist() -> None:
    run, listed = blocks(None, PUBLICATIONS), blocks("targets", PUBLICATIONS)

    assert len(run) + len(listed) == read(PUBLICATIONS).count("```sh")
    assert len(run) >= 2
    assert [words for text in listed for words in commands(text) if not exists(words)] == []


async def test_the_blocks_run_one_after_the_other_against_a_real_stack(tmp_path: Path) -> None:
    ports = {found["port"]: str(free_port()) for found in PORT.finditer(blocks("stack")[0])}
    shell = Shell(ports, tmp_path)

    async with started(shell, tmp_path / "data"):
        said = await shell.run("\n".join(blocks(None)))
        published = await shell.run("\n".join([*_exports(), *blocks(None, PUBLICATIONS)]))

    assert '"status":"accepted"' in said
    assert "enqueue" in said
    assert "INSERT 0 1" in said
    assert len(ports) == 3
    assert re.findall(r'"status":"(\w+)"', published) == ["approved", "scheduled", "scheduled"]
    assert re.findall(r"^status +(\w+)$", published, re.MULTILINE) == ["scheduled", "cancelled", "draft"]
    assert "until Sunday" in published


def _exports() -> list[str]:
    """What a reader of the README has in the shell."""
    return [line for text in blocks(None) for line in text.splitlines() if line.startswith("export ")]
