"""`autopost post send | status | list | cancel | reschedule`."""

from collections.abc import Callable
from functools import wraps
from typing import IO, Any

import click
import msgspec

from autopost_cli.operate.operate import print_json, print_table
from autopost_cli.post.api import PostApi
from autopost_cli.schema.migrate import JSON

LISTED = ("accepted_at", "state", "run_id", "source_ref", "outcomes")
SHOWN = ("title", "platform", "status", "attempts", "next_try_at", "link", "reason")
CHANGED = ("title", "platform", "verdict", "status")

POST = click.argument("post")
ALL = click.option("--all", "is_all", is_flag=True, help="POST is a message id: all requests with this content.")
FORCE = click.option("--force", is_flag=True, help="Also where another request with the same content relies on it.")


def calling(command: Callable[..., None]) -> Callable[..., None]:
    """``command(api, …)``: with the address of ingest and the secret of an endpoint."""

    @click.option("--url", envvar="AUTOPOST_INGEST_URL", required=True, help="Where ingest listens.")
    @click.option(
        "--secret",
        envvar="AUTOPOST_SECRET",
        required=True,
        help="The secret of an endpoint of kind webhook_push. Better in AUTOPOST_SECRET: arguments are visible.",
    )
    @JSON
    @wraps(command)
    def called(url: str, secret: str, as_json: bool, **given: Any) -> None:
        command(PostApi(url.rstrip("/"), secret, as_json), **given)

    return called


@click.group()
def post() -> None:
    """Send a post, see what became of it, cancel it or give it another time. Calls ingest by HTTP."""


@post.command()
@click.argument("text", required=False)
@click.option("--file", type=click.File("rb"), help="A whole post as JSON (`-`: stdin) instead of TEXT.")
@click.option("--channel", "channels", multiple=True, help="Only to this channel: id, chat id or title. Repeatable.")
@click.option("--tag", "tags", multiple=True, help="A tag of the post. Repeatable.")
@click.option("--parse-mode", help="HTML or Markdown.")
@click.option("--source-ref", help="Your own name for it: a repeat is dropped.")
@click.option("--at", help="When to send it, like 2030-12-01T09:00:00+03:00.")
@click.option("--dry-run", is_flag=True, help="Say what would happen, and store nothing.")
@calling
def send(api: PostApi, text: str | None, file: IO[bytes] | None, dry_run: bool, **given: Any) -> None:
    """Send TEXT, or the post of --file."""
    if (text is None) == (file is None):
        raise click.UsageError("Give either TEXT or --file.")
    answer = api.send(file.read() if file else _body(str(text), **given), dry_run=dry_run)
    if api.as_json:
        print_json(answer)
        return
    click.echo(answer["reason"] if dry_run else f"{answer['status']} {answer.get('run_id') or ''}".rstrip())
    counts = answer["counts"] if dry_run else answer.get("channels") or {}
    click.echo("".join(f"{name:20}{count}\n" for name, count in counts.items()), nl=False)
    for warning in answer.get("warnings", ()):
        click.echo(f"warning: {warning['message']}", err=True)
    for problem in answer.get("problems", ()):
        click.echo(f"  {problem['channel_count']} channels: {problem['message']}; {problem['change']}", err=True)


@post.command()
@POST
@calling
def status(api: PostApi, post: str) -> None:
    """Show what became of a POST: the id of its run, post, message or trace."""
    answer = api.status(post)
    if api.as_json:
        print_json(answer)
        return
    click.echo(f"{answer['state']}  run {answer['run_id'] or '-'}  message {answer['message_id'] or '-'}")
    print_table([_shown(one, SHOWN) for one in answer["deliveries"]], SHOWN)
    if answer["more_deliveries"]:
        click.echo(f"… and {answer['more_deliveries']} more")


@post.command("list")
@click.option("--source-ref", help="Only those with this source_ref.")
@click.option("--state", help="staged, scheduled, queued, sent, failed, cancelled or suppressed.")
@click.option("--since", help="Only from this time on, like 2030-12-01T00:00:00Z.")
@click.option("--after", help="The page behind this run.")
@click.option("--limit", default="50", show_default=True, help="Posts of the page, 100 at most.")
@calling
def list_(api: PostApi, **filters: str | None) -> None:
    """List posts, the newest first."""
    answer = api.list(filters)
    if api.as_json:
        print_json(answer)
        return
    print_table([_shown(one, LISTED) for one in answer["posts"]], LISTED)
    if answer["next"]:
        click.echo(f"more: --after {answer['next']}")


@post.command()
@POST
@ALL
@FORCE
@click.option("--partial", is_flag=True, help="Also where some parts are in the channel already.")
@calling
def cancel(api: PostApi, post: str, is_all: bool, force: bool, partial: bool) -> None:
    """Cancel a POST where it was not sent yet; exits with 1 when that is nowhere."""
    _report(api, api.cancel(post, _flags(all=is_all, force=force, partial=partial)))


@post.command()
@POST
@ALL
@click.option("--at", help="Its new time, like 2030-12-01T09:00:00+03:00; without it: now.")
@calling
def reschedule(api: PostApi, post: str, is_all: bool, at: str | None) -> None:
    """Give a POST another time, where it was not tried yet."""
    _report(api, api.reschedule(post, at, _flags(all=is_all)))


def _body(text: str, channels: tuple[str, ...], tags: tuple[str, ...], at: str | None, **fields: str | None) -> bytes:
    post: dict[str, Any] = {"text": text} | {name: value for name, value in fields.items() if value is not None}
    if channels:
        post["routing"] = {"channels": channels}
    if tags:
        post["tags"] = tags
    if at is not None:
        post["scheduled_for"] = at
    return msgspec.json.encode(post)


def _flags(**given: bool) -> dict[str, str]:
    return {name: "1" for name, is_set in given.items() if is_set}


def _report(api: PostApi, answer: dict[str, Any]) -> None:
    if api.as_json:
        print_json(answer)
        return
    click.echo(answer["status"])
    print_table([_shown(one, CHANGED) for one in answer["deliveries"]], CHANGED)


def _shown(row: dict[str, Any], columns: tuple[str, ...]) -> dict[str, Any]:
    made = {name: row.get(name) for name in columns}
    if isinstance(reason := made.get("reason"), dict):
        made["reason"] = reason.get("message") or reason.get("code")
    if isinstance(outcomes := made.get("outcomes"), dict):
        made["outcomes"] = ", ".join(f"{count} {name}" for name, count in sorted(outcomes.items()))
    return made
