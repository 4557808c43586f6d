"""What every operation by hand has in common: who, why, in which workspace, and how its answer is told.

Exit codes: 0 it is done, 1 it was refused or there was nothing to do, 2 it was asked for wrongly. A dry run answers
with the code that the real one would have.
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
from autopost_runtime.redaction import redact

from autopost_cli.migrate import DATABASE, JSON
from autopost_cli.operate_gateway import Row
from autopost_cli.operate_times import shown

T = TypeVar("T")
Command = Callable[..., None]


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """What was asked for beside the operation itself."""

    database_url: str
    workspace: str | None
    as_json: bool
    operator: str = ""
    reason: str = ""
    dry_run: bool = False

    @property
    def is_signed(self) -> bool:
        """It changes something; whoever only looks need not say who he is."""
        return bool(self.operator)


def _login() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container without an entry for its user
        return ""


def _said(_: click.Context, option: click.Parameter, value: str) -> str:
    if not value.strip():
        raise click.BadParameter("it goes into the event, so it must say something", param=option)
    return value.strip()


def _explained(context: click.Context, option: click.Parameter, value: str) -> str:
    """Everybody who may read the log reads it: a token or a number that was pasted along is masked."""
    return redact(_said(context, option, value))


WORKSPACE = click.option(
    "--workspace", metavar="ID|NAME", help="Which workspace. Not needed where there is only one.", default=None
)
OPERATOR = click.option(
    "--operator",
    envvar="AUTOPOST_OPERATOR",
    default=_login,
    show_default="AUTOPOST_OPERATOR, or your login",
    callback=_said,
    help="Who does this; goes into the event.",
)
REASON = click.option("--reason", required=True, callback=_explained, help="Why; goes into the event.")
DRY_RUN = click.option("--dry-run", is_flag=True, help="Say what would happen, and change nothing.")


def reading(command: Command) -> Command:
    """``command(order, …)``: looks, and changes nothing."""
    return _ordered(command, WORKSPACE, DATABASE, JSON)


def changing(command: Command) -> Command:
    """``command(order, …)``: changes something, so it is signed."""
    return _ordered(command, OPERATOR, REASON, DRY_RUN, WORKSPACE, DATABASE, JSON)


def _ordered(command: Command, *options: Callable[[Command], Command]) -> Command:
    @wraps(command)
    def call(**given: Any) -> None:
        named = {name: given.pop(name) for name in Order.__struct_fields__ if name in given}
        command(Order(**named), **given)

    decorated: Command = call
    for option in reversed(options):
        decorated = option(decorated)
    return decorated


def run(work: Coroutine[Any, Any, T]) -> T:
    """What the database refuses is told in its own words; an address or a secret is never part of them."""
    try:
        return asyncio.run(work)
    except asyncpg.PostgresError as exc:
        hint = f" ({exc.hint})" if getattr(exc, "hint", None) else ""
        raise click.ClickException(f"{exc}{hint}") from None
    except (asyncpg.InterfaceError, OSError) as exc:
        raise click.ClickException(f"--database-url: the database cannot be reached: {exc}") from None


def print_json(answer: Any) -> None:
    click.echo(msgspec.json.encode(answer))


def print_table(rows: Sequence[Row], columns: Collection[str]) -> None:
    """One line per row; a column that is empty everywhere is left out."""
    lines = [[shown(row.get(column)) for column in columns] for row in rows]
    titles = [column.upper() for column in columns]
    kept = [place for place in range(len(titles)) if any(line[place] != "-" for line in lines)]
    widths = [max(len(line[place]) for line in [titles, *lines]) for place in range(len(titles))]
    for line in [titles, *lines]:
        click.echo("  ".join(line[place].ljust(widths[place]) for place in kept).rstrip())


def tell(
    order: Order, results: list[Row], columns: Collection[str], done: Collection[str], nothing: str, **beside: list[Row]
) -> None:
    """Ends the command: 0 when something was done, be it beside what was asked for, and nothing was refused, else 1."""
    if order.as_json:
        print_json({"dry_run": order.dry_run, "results": results, **beside})
    elif results:
        print_table(results, columns)
    else:
        click.echo(nothing)
    if order.dry_run and not order.as_json:
        click.echo("Dry run: nothing was changed.")
    verdicts = {row["verdict"] for row in results}
    something = verdicts & set(done) or any(beside.values())
    sys.exit(0 if something and verdicts <= {*done, "unchanged"} else 1)
