"""`autopost publication draft | edit | list | show | preview | approve | schedule | … | calendar | dlq`."""

import sys
from collections.abc import Callable
from datetime import date
from functools import wraps
from typing import IO, Any
from zoneinfo import ZoneInfo

import click
import msgspec

from autopost_cli.operate.operate import print_json, print_table
from autopost_cli.publication.api import PublicationApi
from autopost_cli.publication.dlq import dlq
from autopost_cli.publication.week import Week, Zone, bounds, days
from autopost_cli.schema.migrate import JSON

COLUMNS = ("publication_id", "status", "version", "scheduled_local", "channel_id", "media_type", "pause_code", "text")
FIELDS = (
    *("publication_id", "status", "version", "channel_id", "media_type", "scheduled_local", "timezone", "late_after"),
    *("owner", "created_by", "approved_by", "pause_code", "cancel_reason", "published_message_id", "delivery_id"),
)
TITLE = 60

PUBLICATION = click.argument("publication", type=click.UUID)
FILE = click.argument("file", type=click.File("rb"))
VERSION = click.option(
    "--version", type=click.IntRange(1), help="Only if this is its version; by default whatever it is now."
)
REASON = click.option("--reason", required=True, help="Why; recorded in the event.")


def calling(command: Callable[..., None]) -> Callable[..., None]:
    """``command(api, …)``: with the address of ingest and the secret of an endpoint."""

    @click.option("--url", envvar="AUTOPOST_INGEST_URL", required=True, help="Where ingest listens.")
    @click.option(
        "--secret",
        envvar="AUTOPOST_SECRET",
        required=True,
        help="The secret of an endpoint of kind publication_api. Better in AUTOPOST_SECRET: arguments are visible.",
    )
    @click.option("--operator", envvar="AUTOPOST_OPERATOR", default="", help="Who you are; recorded in the event.")
    @JSON
    @wraps(command)
    def called(url: str, secret: str, operator: str, **given: Any) -> None:
        command(PublicationApi(url.rstrip("/"), secret, operator.strip()), **given)

    return called


@click.group()
def publication() -> None:
    """Publish approved content on time: draft, preview, approve, schedule and watch publications."""


publication.add_command(dlq)


@publication.command()
@FILE
@calling
def draft(api: PublicationApi, file: IO[bytes], as_json: bool) -> None:
    """Draft a publication from a JSON FILE (`-`: stdin) with channel_id and creative_draft."""
    _report(api.draft(_read(file)), as_json)


@publication.command()
@PUBLICATION
@FILE
@VERSION
@calling
def edit(api: PublicationApi, publication: object, file: IO[bytes], version: int | None, as_json: bool) -> None:
    """Give it other content, from a JSON FILE as for draft. It is a draft again, to be approved."""
    _report(api.edit(str(publication), version, _read(file)), as_json)


@publication.command("list")
@click.option("--from", "begin", help="Scheduled at this time or later, like 2026-12-01T00:00:00Z.")
@click.option("--to", "end", help="Scheduled before this time.")
@click.option("--status", help="One status, or several with commas.")
@click.option("--channel", type=click.UUID, help="Only of this channel.")
@click.option("--after", type=click.UUID, help="Continue after this publication.")
@click.option("--limit", type=click.IntRange(1, 100), default=100, show_default=True)
@calling
def list_(api: PublicationApi, as_json: bool, **filters: Any) -> None:
    """List publications by time; those without a time come last."""
    given = {name: None if value is None else str(value) for name, value in filters.items()}
    answer = api.list({"from": given.pop("begin"), "to": given.pop("end"), **given})
    if as_json:
        print_json(answer)
        return
    print_table([_row(one) for one in answer["publications"]], COLUMNS)
    if answer["next"]:
        click.echo(f"More: --after {answer['next']}", err=True)


@publication.command()
@PUBLICATION
@calling
def show(api: PublicationApi, publication: object, as_json: bool) -> None:
    """Show a publication: what it is, when it goes out, and what went wrong."""
    _report(api.show(str(publication)), as_json)


@publication.command()
@PUBLICATION
@calling
def preview(api: PublicationApi, publication: object, as_json: bool) -> None:
    """Show what its channel would get. Changes nothing. Exit code 1 if no plan is possible."""
    answer = api.preview(str(publication))
    if as_json:
        print_json(answer)
    elif answer["plan_hash"]:
        click.echo(f"plan {answer['plan_hash']}, calls {answer['calls']}")
        for note in answer["notes"]:
            click.echo(f"left out: {note}")
        click.echo(f"\n{answer['rendered_text']}")
    else:
        print_table(answer["problems"], ("field", "code", "message"))
    sys.exit(0 if answer["plan_hash"] else 1)


@publication.command()
@PUBLICATION
@VERSION
@click.option("--plan-hash", help="Of the preview that you have seen; another plan is refused.")
@calling
def approve(
    api: PublicationApi, publication: object, version: int | None, plan_hash: str | None, as_json: bool
) -> None:
    """Approve its plan: no other will go out."""
    _report(api.change(str(publication), "approve", version, {"plan_hash": plan_hash}), as_json)


@publication.command()
@PUBLICATION
@VERSION
@click.option("--at", help="A time with its offset, like 2026-12-01T09:00:00+03:00.")
@click.option("--local", help="A local time, like 2026-12-01T09:00; needs --timezone.")
@click.option("--timezone", help="Like Europe/Moscow.")
@calling
def schedule(api: PublicationApi, publication: object, version: int | None, as_json: bool, **times: str | None) -> None:
    """Give an approved publication its time, or another one."""
    _report(api.change(str(publication), "schedule", version, times), as_json)


@publication.command()
@PUBLICATION
@VERSION
@calling
def unschedule(api: PublicationApi, publication: object, version: int | None, as_json: bool) -> None:
    """Take its time away; it stays approved."""
    _report(api.change(str(publication), "unschedule", version, {}), as_json)


@publication.command()
@PUBLICATION
@VERSION
@REASON
@calling
def cancel(api: PublicationApi, publication: object, version: int | None, reason: str, as_json: bool) -> None:
    """Cancel it for good, unless it is being sent already."""
    _report(api.change(str(publication), "cancel", version, {"reason": reason}), as_json)


@publication.command()
@PUBLICATION
@VERSION
@REASON
@calling
def retry(api: PublicationApi, publication: object, version: int | None, reason: str, as_json: bool) -> None:
    """Send a failed publication again; parts that are in the channel are not repeated."""
    _report(api.change(str(publication), "retry", version, {"reason": reason}), as_json)


@publication.command()
@PUBLICATION
@click.argument("decision", type=click.Choice(["sent", "resend"]))
@VERSION
@REASON
@click.option("--provider-message-id", help="The id of the message that you found in the channel.")
@calling
def resolve(api: PublicationApi, publication: object, version: int | None, as_json: bool, **fields: str | None) -> None:
    """After an unanswered call, say whether the message is in the channel: `sent`, or `resend` if it is not."""
    _report(api.change(str(publication), "resolve", version, fields), as_json)


@publication.command()
@click.option("--week", type=Week(), help="Like 2026-W49; by default the current one.")
@click.option("--timezone", "zone", type=Zone(), default="UTC", show_default=True, help="Like Europe/Moscow.")
@calling
def calendar(api: PublicationApi, week: date | None, zone: ZoneInfo, as_json: bool) -> None:
    """Show the publications of a week by day."""
    begin, end = bounds(week, zone)
    found: list[dict[str, Any]] = []
    after = None
    while True:
        page = api.list({"from": begin, "to": end, "after": after})
        found += page["publications"]
        after = page["next"]
        if after is None:
            break
    if as_json:
        print_json({"from": begin, "to": end, "publications": found})
        return
    for day, entries in days(found, zone).items():
        click.secho(f"{day:%a %d %b %Y}", bold=True)
        for at, one in entries:
            click.echo(f"  {at}  {one['status']:<10} {one['publication_id']}  {_title(one)}")
    if not found:
        click.echo(f"Nothing is scheduled from {begin} to {end}.")


def _read(file: IO[bytes]) -> dict[str, Any]:
    try:
        return msgspec.json.decode(file.read(), type=dict[str, Any])
    except msgspec.DecodeError as exc:
        raise click.ClickException(f"the file is not a JSON object: {exc}") from exc


def _report(answer: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(answer)
        return
    for name in FIELDS:
        if answer.get(name) is not None:
            click.echo(f"{name:<21} {_clean(str(answer[name]))}")
    if error := answer.get("last_error"):
        click.echo(
            f"{'last_error':<21} {_clean(': '.join(str(error[one]) for one in ('code', 'message') if one in error))}"
        )
    click.echo(f"{'text':<21} {_title(answer)}")
    for warning in answer.get("warnings", ()):
        about = ", ".join(f"{name} {value}" for name, value in warning.items() if name != "code")
        click.echo(_clean(f"warning: {warning['code']}: {about}"), err=True)


def _row(answer: dict[str, Any]) -> dict[str, Any]:
    return {**answer, "text": _title(answer)}


def _title(answer: dict[str, Any]) -> str:
    text = _clean(" ".join(answer["creative_draft"].get("text", "").split()))
    return text if len(text) <= TITLE else f"{text[: TITLE - 1]}…"


def _clean(text: str) -> str:
    """One line without control characters."""
    return "".join(character if character.isprintable() else " " for character in text)
