"""The command: start the system, run the criteria, report the findings."""

import asyncio
import os
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import asyncpg
import click
import httpx
import msgspec
from autopost_runtime.config.load import ConfigError

from autopost_cli.demo.criteria import CRITERIA
from autopost_cli.demo.finding import Finding
from autopost_cli.demo.system import ConditionNotMet, DemoSystem
from autopost_cli.embedded.processes import BackendError
from autopost_cli.stack.stack import Stack
from autopost_cli.stack.supervise import RefusedError

Say = Callable[[str], None]


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object at the end instead of text.")
@click.option("--sabotage", type=click.IntRange(1, 6), help="Break criterion N on purpose; the demo must detect it.")
@click.option("--patience", type=float, default=20.0, show_default=True, help="Time limit of a step, in seconds.")
def demo(as_json: bool, sabotage: int | None, patience: float) -> None:
    """Start the whole system, send a post to forty channels, and check the six guarantees one by one.

    Exit code 0 only if all of them hold. AUTOPOST_*_URL variables replace parts as in `autopost up`; with
    AUTOPOST_NATS_URL=off the services poll the database.
    """
    say: Say = (lambda _: None) if as_json else click.echo
    try:
        findings = asyncio.run(_perform(sabotage, timedelta(seconds=patience), say))
    except (ConfigError, BackendError, RefusedError) as error:
        raise click.ClickException(str(error)) from None
    holds = all(finding.holds for finding in findings)
    if as_json:
        click.echo(msgspec.json.encode({"holds": holds, "criteria": [_as_json(finding) for finding in findings]}))
    else:
        click.echo("\nAll checks passed." if holds else "\nSome checks failed.")
    sys.exit(0 if holds else 1)


async def _perform(sabotage: int | None, patience: timedelta, say: Say) -> list[Finding]:
    started = time.monotonic()
    say("Starting Postgres, NATS, S3, the simulator and the four services …")
    async with Stack(env={"AUTOPOST_LOG_LEVEL": "warning", **os.environ}) as stack:
        places = stack.describe()
        say(f"Ready after {time.monotonic() - started:.1f} s. Watch the channels fill: {places['simulator']}/")
        database = await asyncpg.connect(places["database_url"])
        try:
            async with httpx.AsyncClient(timeout=10) as http:
                nats = stack if stack.backends.nats else None
                system = DemoSystem(database, http, places["ingest"], places["simulator"], patience, nats)
                return await act(system, sabotage, say)
        finally:
            await database.close()


async def act(system: DemoSystem, sabotage: int | None = None, say: Say = lambda _: None) -> list[Finding]:
    """Run every criterion on a running system; changes are undone at the end."""
    findings = []
    await _tidy(system)
    for number, (title, criterion) in enumerate(CRITERIA):
        finding = Finding(title=title)
        try:
            await criterion(system, finding, number == sabotage)
        except (ConditionNotMet, httpx.HTTPError) as error:
            finding.check(str(error) or type(error).__name__, False)
            await system.unscript()
        findings.append(finding)
        say(_as_text(finding))
    await _tidy(system)
    return findings


async def _tidy(system: DemoSystem) -> None:
    await system.sql("tidy")
    await system.sql("enable_returns")


def _as_text(finding: Finding) -> str:
    lines = [f"\n{finding.title}: {'holds' if finding.holds else 'DOES NOT HOLD'}"]
    for label, entries in (
        ("done", finding.done),
        ("expected", finding.expected),
        ("database", finding.database),
        ("simulator", finding.simulator),
        ("MISSING", finding.failed),
    ):
        lines += [f"  {label:<10} {entry}" for entry in entries]
    return "\n".join(lines)


def _as_json(finding: Finding) -> dict[str, Any]:
    return {**msgspec.structs.asdict(finding), "holds": finding.holds}
