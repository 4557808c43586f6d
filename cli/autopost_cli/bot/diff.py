"""`autopost bot diff`: what other rules would have answered to what customers really wrote."""

import re
import sys
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import click
from autopost_bot.engine.compare import FALLBACK, Compared, Observed, compare
from autopost_bot.engine.normal_form import normal_form
from autopost_bot.engine.read_update import read_update
from autopost_bot.engine.ruleset import Ruleset
from autopost_runtime.secrets.redaction import redact

from autopost_cli.bot.gateway import BotGateway, bot_gateway
from autopost_cli.bot.history import SINCE
from autopost_cli.bot.rules_file import RULES_FILE, read_ruleset
from autopost_cli.operate.gateway import Row
from autopost_cli.operate.operate import CommonOptions, accessing, print_json, print_table, run

MOST_TEXTS = 10
WORSE = 2
_NUMBER = re.compile(r"\d{3,}")


@click.command()
@click.option(
    "--rules", "file", type=RULES_FILE, required=True, help="The rules to compare with those of the workspace."
)
@SINCE
@accessing
def diff(options: CommonOptions, file: Path, since: datetime) -> None:
    """Compare the log, today's rules and those of a file, over the updates of a time.

    Exit code 2 if the share of messages that no rule answers, or takes as a value, rises. Records payload_accessed.
    """
    new = read_ruleset(file)
    if new.refused:
        raise click.ClickException(f"{file}: " + "; ".join(new.refused))

    async def work() -> Row:
        async with bot_gateway(options) as gateway:
            return await compared_lanes(gateway, (await gateway.rules()).ruleset, new, since)

    report = run(work())
    if options.as_json:
        print_json(report)
    else:
        print_lanes(report)
    sys.exit(WORSE if is_worse(report) else 0)


async def compared_lanes(gateway: BotGateway, today: Ruleset, new: Ruleset, since: datetime) -> Row:
    rows = [row async for row in gateway.turns(since, datetime.now(UTC))]
    known = [row for row in rows if row["update"] is not None or row["meta"].get("outcome") == "released"]
    return summary(list(compare(today, new, map(_observed, known))), len(rows) - len(known))


def is_worse(report: Row) -> bool:
    return bool(report["fallback"]["new"] > report["fallback"]["today"])


def summary(compared: list[Compared], forgotten: int) -> Row:
    changes = Counter(one.change for one in compared)
    return {
        "turns": len(compared),
        "forgotten": forgotten,
        "decided_otherwise_then": sum(not one.is_observed for one in compared),
        "fallback": {
            "observed": sum(one.observed.outcome in FALLBACK for one in compared),
            "today": sum(one.today.outcome in FALLBACK for one in compared),
            "new": sum(one.new.outcome in FALLBACK for one in compared),
        },
        "changes": dict(sorted(changes.items())),
        "texts": {change: list(_texts(compared, change)) for change in sorted(changes) if change != "same"},
    }


def _texts(compared: list[Compared], change: str) -> Iterator[Row]:
    """The most frequent ones, without numbers and addresses."""
    found = Counter(
        (_masked(one.observed.update.text), one.today.log.matched_rule_id, one.new.log.matched_rule_id)
        for one in compared
        if one.change == change
    )
    ranked = sorted(found.items(), key=lambda item: (-item[1], str(item[0])))
    for (text, today, new), times in ranked[:MOST_TEXTS]:
        yield {"change": change, "times": times, "text": text, "today": today, "new": new}


def _masked(text: str) -> str:
    """As `autopost bot unmatched` shows texts."""
    hidden = _NUMBER.sub("***", redact(text[:300])).split("***")
    return " # ".join(map(normal_form, hidden)).strip()


def _observed(row: Row) -> Observed:
    meta = row["meta"]
    at = row["at"] or row["logged_at"]
    flooded = meta.get("outcome") == "flooded"
    return Observed(
        chat=row["chat"],
        update=read_update(row["key"] or "", row["kind"] or "", row["update"], at, row["provider_ts"], flooded=flooded),
        logged_at=row["logged_at"],
        outcome=meta.get("outcome", ""),
        rule_id=row["matched_rule_id"],
        state_after=row["state_after"],
        gathered=tuple(meta.get("gathered", ())),
    )


def print_lanes(report: Row) -> None:
    fallback = report["fallback"]
    click.echo(
        f"{report['turns']} turns; {report['decided_otherwise_then']} were decided by other rules then than today"
    )
    if report["forgotten"]:
        click.echo(f"{report['forgotten']} more are too old: retention has deleted their updates")
    click.echo(
        f"no rule answered: {fallback['observed']} then, {fallback['today']} today, {fallback['new']} with the new"
    )
    print_table(
        [{"change": change, "turns": count} for change, count in report["changes"].items()], ("change", "turns")
    )
    if texts := [row for rows in report["texts"].values() for row in rows]:
        print_table(texts, ("change", "times", "text", "today", "new"))
