"""`autopost bot rules list | show | export | import | enable | disable`."""

import sys
from contextlib import redirect_stdout
from datetime import datetime
from pathlib import Path

import click
from autopost_bot.engine.lint import Finding, lint
from autopost_bot.engine.rules import Rule, Settings
from autopost_bot.engine.ruleset import InvalidRule, Ruleset, read_rule

from autopost_cli.bot.diff import compared_lanes, is_worse, print_lanes
from autopost_cli.bot.gateway import BotGateway, StoredRules, bot_gateway
from autopost_cli.bot.rules_file import RULES_FILE, read_ruleset, write_rules
from autopost_cli.operate.gateway import Row
from autopost_cli.operate.operate import CommonOptions, changing, print_json, print_table, reading, run
from autopost_cli.operate.times import Moment

LISTED = ("rule_id", "version", "enabled", "intent", "mode", "priority", "state", "next_state", "created_at")
LONGEST_VERSION = 9
"""Digits."""


@click.group()
def rules() -> None:
    """The rules of the bot: list, show, export, import, enable and disable versions."""


@rules.command("list")
@click.option("--all", "every", is_flag=True, help="Also versions that are not enabled.")
@reading
def list_rules(options: CommonOptions, every: bool) -> None:
    """List the rules that answer, or every version."""
    rows = [_listed(row) for row in run(_all_rules(options)) if every or row["enabled"]]
    if options.as_json:
        print_json({"rules": rows})
    else:
        print_table(rows, LISTED)


@rules.command()
@click.argument("rule_id")
@click.option("--version", type=click.IntRange(1), help="By default the enabled one, else the newest.")
@reading
def show(options: CommonOptions, rule_id: str, version: int | None) -> None:
    """Show one version of a rule as it would stand in a rules file."""
    found = [row for row in run(_all_rules(options)) if row["rule_id"] == rule_id]
    chosen = [row for row in found if (row["version"] == version if version else row["enabled"])] or found[:1]
    if not chosen or (version and chosen[0]["version"] != version):
        raise click.ClickException(
            f"rule {rule_id!r} has no version {version or 'at all'}; see `autopost bot rules list`"
        )
    if options.as_json:
        print_json(chosen[0]["rule"])
        return
    rule = _read(chosen[0]["rule"])
    click.echo(f"# version {rule.version}, {'enabled' if chosen[0]['enabled'] else 'not enabled'}")
    click.echo(write_rules(Ruleset([rule], Settings())).partition("rules:\n")[2], nl=False)


@rules.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path), required=False)
@reading
def export(options: CommonOptions, file: Path | None) -> None:
    """Write the enabled rules and the settings to FILE, or print them. `import` reads what this writes."""
    stored = run(_stored(options))
    if options.as_json:
        print_json({"settings": stored.ruleset.settings_document, "rules": stored.ruleset.rules_document})
    elif file is None:
        click.echo(write_rules(stored.ruleset), nl=False)
    else:
        file.write_text(write_rules(stored.ruleset), encoding="utf-8")
        click.echo(f"wrote {len(stored.ruleset.rules)} rules to {file}")


@rules.command("import")
@click.argument("file", type=RULES_FILE)
@click.option("--enable", "at_once", is_flag=True, help="Enable them in the same transaction, like `enable`.")
@click.option("--force", is_flag=True, help="With --enable: in spite of errors that `autopost bot lint` finds.")
@changing
def import_rules(options: CommonOptions, file: Path, at_once: bool, force: bool) -> None:
    """Store the rules of FILE as new versions. They answer nobody before they are enabled."""
    given = read_ruleset(file)
    if given.refused:
        raise click.ClickException(f"{file}: " + "; ".join(given.refused))

    async def work() -> tuple[list[Row], list[Finding], bool]:
        async with bot_gateway(options) as gateway, gateway.transaction(dry_run=options.dry_run):
            stored = await gateway.rules()
            rows = await gateway.import_rules(given.rules_document)
            findings: list[Finding] = []
            if at_once:
                release = [{"rule_id": row["rule_id"], "version": row["version"]} for row in rows]
                findings = await _release(gateway, release, force)
            return rows, findings, given.settings_document != stored.ruleset.settings_document

    rows, findings, other_settings = run(work())
    _print_findings(findings)
    if other_settings:
        click.echo("The settings of the file differ from bot_settings. Import changes rules only.", err=True)
    _report(options, rows, ("rule_id", "version", "verdict"))


@rules.command()
@click.argument("release", nargs=-1, metavar="RULE[=VERSION]…")
@click.option("--newest", is_flag=True, help="The newest version of every rule, in one release.")
@click.option("--force", is_flag=True, help="In spite of errors that `autopost bot lint` finds.")
@click.option("--diff", "show_diff", is_flag=True, help="First show what they change, as `autopost bot diff`, and ask.")
@click.option(
    "--since",
    type=Moment(),
    default="30d",
    show_default=True,
    help="With --diff: over the updates since a time, or a duration before now.",
)
@click.option("--yes", is_flag=True, help="With --diff: ask only if more messages stay without an answer.")
@changing
def enable(
    options: CommonOptions,
    release: tuple[str, ...],
    newest: bool,
    force: bool,
    show_diff: bool,
    since: datetime,
    yes: bool,
) -> None:
    """Let versions of rules answer, all of them from the same moment on; by default the newest of each rule."""
    _check_names(release, newest)
    if show_diff:
        _ask(options, run(_lanes(options, release, since)), yes)

    async def work() -> tuple[list[Row], list[Finding]]:
        async with bot_gateway(options) as gateway, gateway.transaction(dry_run=options.dry_run):
            chosen = _chosen(release, await gateway.all_rules())
            before = {row["rule_id"]: row["version"] for row in await gateway.all_rules() if row["enabled"]}
            findings = await _release(gateway, chosen, force)
            return [_moved(one, before) for one in chosen], findings

    rows, findings = run(work())
    _print_findings(findings)
    _report(options, rows, ("rule_id", "was", "is", "verdict"))


async def _lanes(options: CommonOptions, release: tuple[str, ...], since: datetime) -> Row:
    async with bot_gateway(options) as gateway:
        stored, versions = await gateway.rules(), await gateway.all_rules()
        after = _after(stored.ruleset, _chosen(release, versions), versions)
        return await compared_lanes(gateway, stored.ruleset, after, since)


def _ask(options: CommonOptions, report: Row, yes: bool) -> None:
    """Everything goes to standard error, so that --json stays JSON."""
    with redirect_stdout(sys.stderr):
        print_lanes(report)
    asks = is_worse(report) or not yes
    if asks and not options.dry_run and not click.confirm("Enable these versions?", err=True):
        click.echo("Nothing was changed.", err=True)
        sys.exit(1)


@rules.command()
@click.argument("rule_ids", nargs=-1, required=True, metavar="RULE…")
@click.option("--force", is_flag=True, help="In spite of errors that `autopost bot lint` finds.")
@changing
def disable(options: CommonOptions, rule_ids: tuple[str, ...], force: bool) -> None:
    """Let rules answer no more, all of them from the same moment on."""

    async def work() -> tuple[list[Row], list[Finding]]:
        async with bot_gateway(options) as gateway, gateway.transaction(dry_run=options.dry_run):
            before = {row["rule_id"]: row["version"] for row in await gateway.all_rules() if row["enabled"]}
            chosen: list[Row] = [{"rule_id": rule_id, "version": None} for rule_id in rule_ids]
            findings = await _release(gateway, chosen, force)
            return [_moved(one, before) for one in chosen], findings

    rows, findings = run(work())
    _print_findings(findings)
    _report(options, rows, ("rule_id", "was", "verdict"))


async def _release(gateway: BotGateway, release: list[Row], force: bool) -> list[Finding]:
    """Lints the rules as they will be; the database refuses errors that are not forced."""
    stored = await gateway.rules()
    after = _after(stored.ruleset, release, await gateway.all_rules())
    findings = [one for one in lint(after, await gateway.live_states()) if one.severity == "error"]
    if findings and not force:
        _print_findings(findings)
    verdict = {
        "errors": len(findings),
        "forced": force,
        "rules_seq": stored.rules_seq,
        "was": stored.ruleset.hash,
        "is": after.hash,
    }
    await gateway.enable_rules(release, verdict)
    return findings if force else []


def _after(ruleset: Ruleset, release: list[Row], stored: list[Row]) -> Ruleset:
    changed = {row["rule_id"]: row["version"] for row in release}
    versions = {(row["rule_id"], row["version"]): row["rule"] for row in stored}
    kept = [rule for rule in ruleset.rules if rule.rule_id not in changed]
    refused: list[str] = []
    for key in (key for key in changed.items() if key in versions):
        try:
            kept.append(read_rule(versions[key]))
        except InvalidRule as exc:
            refused.append(str(exc))
    return Ruleset(kept, ruleset.settings, tuple(refused))


def _chosen(release: tuple[str, ...], stored: list[Row]) -> list[Row]:
    newest = {row["rule_id"]: row["version"] for row in reversed(stored)}
    if not release:
        return [{"rule_id": rule_id, "version": version} for rule_id, version in newest.items()]
    there = {(row["rule_id"], row["version"]) for row in stored}
    chosen: dict[str, Row] = {}
    for written in release:
        rule_id, _, version = written.partition("=")
        if version and not version.isdecimal():
            raise click.UsageError(f"{written!r}: write RULE or RULE=VERSION, such as delivery=3")
        if rule_id in chosen:
            raise click.UsageError(f"rule {rule_id} is named twice; name one version of it")
        number = newest.get(rule_id) if not version else int(version[:LONGEST_VERSION])
        if (rule_id, number) not in there or len(version) > LONGEST_VERSION:
            raise click.ClickException(
                f"rule {rule_id} has no version {version[:20] or 'at all'}; see `autopost bot rules list --all`"
            )
        chosen[rule_id] = {"rule_id": rule_id, "version": number}
    return list(chosen.values())


def _check_names(release: tuple[str, ...], newest: bool) -> None:
    if bool(release) == newest:
        raise click.UsageError("name rules, such as delivery or delivery=3, or use --newest")


def _moved(one: Row, before: Row) -> Row:
    was, now = before.get(one["rule_id"]), one["version"]
    verdict = "unchanged" if was == now else ("disabled" if now is None else "enabled")
    return {"rule_id": one["rule_id"], "was": was, "is": now, "verdict": verdict}


def _print_findings(findings: list[Finding]) -> None:
    for one in findings:
        click.echo(f"{one.code} {one.severity}: {one.rule_id or 'settings'}: {one.message}", err=True)


def _report(options: CommonOptions, rows: list[Row], columns: tuple[str, ...]) -> None:
    if options.as_json:
        print_json({"dry_run": options.dry_run, "results": rows})
    else:
        print_table(rows, columns)
        if options.dry_run:
            click.echo("Dry run: nothing was changed.")
    sys.exit(0 if any(row["verdict"] != "unchanged" for row in rows) else 1)


async def _all_rules(options: CommonOptions) -> list[Row]:
    async with bot_gateway(options) as gateway:
        return await gateway.all_rules()


async def _stored(options: CommonOptions) -> StoredRules:
    async with bot_gateway(options) as gateway:
        return await gateway.rules()


def _listed(row: Row) -> Row:
    rule = row["rule"]
    return {
        **{name: rule.get(name) for name in LISTED},
        "mode": rule["pattern"].get("mode"),
        "created_at": row["created_at"],
    }


def _read(row: Row) -> Rule:
    try:
        return read_rule(row)
    except InvalidRule as exc:
        raise click.ClickException(f"{exc}; --json shows it as it is") from None
