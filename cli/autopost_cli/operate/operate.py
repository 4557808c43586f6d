"""What all operator commands share: operator, reason, workspace, and the output of results.

Exit codes: 0 done, 1 refused or nothing to do, 2 wrong usage. A dry run exits with the code of the real run.
"""

import asyncio
import getpass
import sys
from collections.abc import Callable, Collection, Coroutine, Sequence
from functools import wraps
from typing import Any, TypeVar

import asyncpg
import click
import msgspec
from autopost_runtime.secrets.redaction import redact

from autopost_cli.operate.gateway import Row
from autopost_cli.operate.times import shown
from autopost_cli.schema.migrate import DATABASE, JSON

T = TypeVar("T")
Command = Callable[..., None]


class CommonOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options that all operator commands share."""

    database_url: str
    workspace: str | None
    as_json: bool
    operator: str = ""
    reason: str = ""
    dry_run: bool = False

    @property
    def is_signed(self) -> bool:
        """True for commands that change something; reading needs no operator."""
        return bool(self.operator)


def _login() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container may have no passwd entry
        return ""


def _not_empty(_: click.Context, option: click.Parameter, value: str) -> str:
    if not value.strip():
        raise click.BadParameter("must not be empty: it is recorded in the event", param=option)
    return value.strip()


def _redacted_reason(context: click.Context, option: click.Parameter, value: str) -> str:
    """The reason, redacted: many people can read the event log."""
    return redact(_not_empty(context, option, value))


WORKSPACE = click.option(
    "--workspace", metavar="ID|NAME", help="The workspace. Optional if there is only one.", default=None
)
OPERATOR = click.option(
    "--operator",
    envvar="AUTOPOST_OPERATOR",
    default=_login,
    show_default="AUTOPOST_OPERATOR, or your login",
    callback=_not_empty,
    help="Who makes this change; recorded in the event.",
)
REASON = click.option("--reason", required=True, callback=_redacted_reason, help="Why; recorded in the event.")
DRY_RUN = click.option("--dry-run", is_flag=True, help="Show what would happen; change nothing.")


def reading(command: Command) -> Command:
    """``command(options, …)``: reads only."""
    return _with_options(command, WORKSPACE, DATABASE, JSON)


def changing(command: Command) -> Command:
    """``command(options, …)``: changes something, so it is signed by the operator."""
    return _with_options(command, OPERATOR, REASON, DRY_RUN, WORKSPACE, DATABASE, JSON)


def accessing(command: Command) -> Command:
    """``command(options, …)``: reads what people wrote, so it is signed by the operator."""
    return _with_options(command, OPERATOR, REASON, WORKSPACE, DATABASE, JSON)


def _with_options(command: Command, *decorators: Callable[[Command], Command]) -> Command:
    @wraps(command)
    def call(**given: Any) -> None:
        named = {name: given.pop(name) for name in CommonOptions.__struct_fields__ if name in given}
        command(CommonOptions(**named), **given)

    decorated: Command = call
    for option in reversed(decorators):
        decorated = option(decorated)
    return decorated


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run it; database errors become messages for the user, without URLs or secrets."""
    try:
        return asyncio.run(work)
    except asyncpg.PostgresError as exc:
        hint = f" ({exc.hint})" if getattr(exc, "hint", None) else ""
        raise click.ClickException(f"{exc}{hint}") from None
    except (asyncpg.InterfaceError, OSError) as exc:
        raise click.ClickException(f"cannot connect to the database: {exc}; check --database-url") from None


def print_json(answer: Any) -> None:
    click.echo(msgspec.json.encode(answer))


def print_table(rows: Sequence[Row], columns: Collection[str]) -> None:
    """One line per row; empty columns are left out."""
    lines = [[shown(row.get(column)) for column in columns] for row in rows]
    titles = [column.upper() for column in columns]
    kept = [place for place in range(len(titles)) if any(line[place] != "-" for line in lines)]
    widths = [max(len(line[place]) for line in [titles, *lines]) for place in range(len(titles))]
    for line in [titles, *lines]:
        click.echo("  ".join(line[place].ljust(widths[place]) for place in kept).rstrip())


def report_results(
    options: CommonOptions,
    results: list[Row],
    columns: Collection[str],
    done: Collection[str],
    nothing: str,
    **beside: list[Row],
) -> None:
    """Print the results and exit: 0 if something was done and nothing was refused, else 1."""
    if options.as_json:
        print_json({"dry_run": options.dry_run, "results": results, **beside})
    elif results:
        print_table(results, columns)
    else:
        click.echo(nothing)
    if options.dry_run and not options.as_json:
        click.echo("Dry run: nothing was changed.")
    verdicts = {row["verdict"] for row in results}
    something = verdicts & set(done) or any(beside.values())
    sys.exit(0 if something and verdicts <= {*done, "unchanged"} else 1)
