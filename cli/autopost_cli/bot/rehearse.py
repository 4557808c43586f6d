"""`autopost bot lint | test | chat`: what rules do before they answer a customer. A rules file needs no database."""

import sys
from collections.abc import Callable
from datetime import UTC, datetime
from functools import wraps
from pathlib import Path
from typing import Any

import click
import yaml
from autopost_bot.engine.conversations import Dialog, Failure, InvalidConversation, run_conversations, run_phrases
from autopost_bot.engine.intervals import read_interval
from autopost_bot.engine.lint import Finding, lint
from autopost_bot.engine.ruleset import Ruleset
from autopost_bot.engine.turn import Turn

from autopost_cli.bot.explain import why_lines
from autopost_cli.bot.gateway import bot_gateway
from autopost_cli.bot.rules_file import RULES_FILE, read_file, read_ruleset
from autopost_cli.operate.operate import WORKSPACE, CommonOptions, print_json, print_table, run
from autopost_cli.schema.migrate import JSON

DATABASE_URL = click.option(
    "--database-url", envvar="AUTOPOST_DATABASE_URL", help="Where the rules are, without --rules."
)
RULES = click.option(
    "--rules", "file", type=RULES_FILE, help="A rules file, instead of the enabled rules of a workspace."
)
HELP = """\
Write as a customer. :press TEXT presses a button, :photo sends one, :start opens the dialog, :wait 31m lets time pass,
:state shows the conversation, :why explains the last answer, :save FILE adds this conversation to a file of tests,
:quit ends."""


def _with_rules(command: Callable[..., None]) -> Callable[..., None]:
    """``command(ruleset, live_states, …)``: of a file, or of a workspace."""

    @wraps(command)
    def call(file: Path | None, database_url: str | None, workspace: str | None, **given: Any) -> None:
        if file is not None:
            return command(read_ruleset(file), {}, **given)
        if not database_url:
            raise click.UsageError("name a rules file with --rules, or a database with --database-url")
        options = CommonOptions(database_url=database_url, workspace=workspace, as_json=False)
        ruleset, states = run(_stored(options))
        return command(ruleset, states, **given)

    for option in (JSON, DATABASE_URL, WORKSPACE, RULES):
        call = option(call)
    return call


async def _stored(options: CommonOptions) -> tuple[Ruleset, dict[str, int]]:
    async with bot_gateway(options) as gateway:
        return (await gateway.rules()).ruleset, await gateway.live_states()


@click.command("lint")
@_with_rules
def lint_command(ruleset: Ruleset, states: dict[str, int], as_json: bool) -> None:
    """Find rules that never win, dead ends, missing variables and the like. Exit code 1 if there are errors."""
    found = lint(ruleset, states)
    if as_json:
        print_json({"findings": found})
    else:
        print_table([_row(one) for one in found], ("code", "severity", "rule", "finding"))
        errors = sum(one.severity == "error" for one in found)
        click.echo(f"{len(ruleset.rules)} rules: {errors} errors, {len(found) - errors} warnings")
    sys.exit(1 if any(one.severity == "error" for one in found) else 0)


@click.command("test")
@click.argument("files", type=RULES_FILE, nargs=-1, required=True, metavar="FILE…")
@_with_rules
def test_command(ruleset: Ruleset, states: dict[str, int], files: tuple[Path, ...], as_json: bool) -> None:
    """Run written conversations, or phrases by intent. Exit code 1 if an expectation is not met."""
    results = [(file, *_tested(ruleset, file)) for file in files]
    failures = [(file, failure) for file, _, failed in results for failure in failed]
    count = sum(number for _, number, _ in results)
    if as_json:
        print_json({"run": count, "failures": [{"file": str(file), **_failure(one)} for file, one in failures]})
    else:
        for file, one in failures:
            click.echo(
                f"{file}: {one.conversation}, turn {one.turn}: {one.field}: "
                f"expected {one.expected!r}, got {one.found!r}"
            )
        click.echo(f"{count} run, {len(failures)} failures")
    sys.exit(1 if failures else 0)


def _tested(ruleset: Ruleset, file: Path) -> tuple[int, list[Failure]]:
    """How many were run, and what failed."""
    document = read_file(file)
    try:
        if isinstance(document, list):
            return len(document), list(run_conversations(ruleset, document))
        if isinstance(document, dict) and all(isinstance(texts, list) for texts in document.values()):
            return sum(map(len, document.values())), list(run_phrases(ruleset, document))
    except InvalidConversation as exc:
        raise click.ClickException(f"{file}: {exc}") from None
    raise click.ClickException(f"{file}: must be a list of conversations, or phrases by intent")


@click.command()
@_with_rules
def chat(ruleset: Ruleset, states: dict[str, int], as_json: bool) -> None:
    """Talk to the bot in the terminal. Nothing is stored or sent."""
    dialog = Dialog(ruleset, datetime.now(UTC))
    said: list[dict[str, Any]] = []
    click.echo(HELP, err=True)
    while (line := _line()) is not None and line != ":quit":
        try:
            _heard(dialog, line, said)
        except (InvalidConversation, ValueError, OverflowError, OSError) as exc:
            click.echo(f"  {exc}", err=True)


def _line() -> str | None:
    try:
        return str(click.prompt(">", prompt_suffix=" ", default="", show_default=False)).strip()
    except click.Abort:
        return None


def _heard(dialog: Dialog, line: str, said: list[dict[str, Any]]) -> None:
    match line.split(maxsplit=1):
        case []:
            return
        case [":state"]:
            current = dialog.conversation
            click.echo(f"  {current.state} {current.context} until {current.expires_at or 'ever'}")
        case [":why"]:
            for explained in why_lines(dialog.ruleset, dialog.last_update, dialog.last_before):
                click.echo(f"  {explained}")
        case [":wait", time]:
            dialog.wait(read_interval(time))
            said.append({"wait": time})
        case [":save", path]:
            _save(Path(path), said)
        case [":start"]:
            _show(dialog, dialog.start(), {"start": True}, said)
        case [":photo"]:
            _show(dialog, dialog.say("", ("image",)), {"attach": "image"}, said)
        case [":press", text]:
            _show(dialog, dialog.press(text), {"press": text}, said)
        case [command, *_] if command.startswith(":"):
            click.echo(HELP, err=True)
        case _:
            _show(dialog, dialog.say(line), {"say": line}, said)


def _show(dialog: Dialog, turn: Turn, deed: dict[str, Any], said: list[dict[str, Any]]) -> None:
    expected = {"outcome": turn.outcome, "rule": turn.log.matched_rule_id, "state": dialog.conversation.state}
    said.append(deed | {name: value for name, value in expected.items() if value is not None})
    if turn.reply is None:
        click.echo(f"  ({turn.outcome}{f': {turn.notification}' if turn.notification else ''})")
        return
    click.echo("\n".join(f"  {line}" for line in turn.reply.text.splitlines()))
    for row in turn.reply.buttons:
        click.echo("  " + " ".join(f"[{button.text}]" for button in row))


def _save(path: Path, said: list[dict[str, Any]]) -> None:
    before = read_file(path) or [] if path.exists() else []
    if not isinstance(before, list):
        raise click.ClickException(f"{path}: holds no list of conversations; save to another file")
    kept = [*before, {"name": f"conversation {len(before) + 1}", "turns": said}]
    path.write_text(yaml.safe_dump(kept, allow_unicode=True, sort_keys=False, width=110), encoding="utf-8")
    click.echo(f"  saved {len(said)} turns to {path}")


def _row(one: Finding) -> dict[str, Any]:
    return {"code": one.code, "severity": one.severity, "rule": one.rule_id, "finding": one.message}


def _failure(one: Failure) -> dict[str, Any]:
    return {name: getattr(one, name) for name in one.__struct_fields__}
