"""The command: start one Postgres, measure, judge, report."""

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from autopost_bench.counts import FULL, QUICK, Counts
from autopost_bench.report.bars import TAGS, Tag

if TYPE_CHECKING:
    from autopost_bench.report.report import Report

PAGE = Path(__file__).resolve().parents[2] / "docs" / "benchmarks.md"


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of tables.")
@click.option("--only", type=click.Choice(TAGS), help="Measure what these bars need and nothing else.")
@click.option("--quick", is_flag=True, help="Smaller counts, the same ratios, some three minutes.")
@click.option(
    "--parent",
    type=click.Path(exists=True, file_okay=False, resolve_path=True, path_type=Path),
    help="Another checkout, after `make setup`: tenants are compared with it, too.",
)
@click.option("--write/--no-write", default=None, help="Write docs/benchmarks.md; the default for a whole, full run.")
def bench(as_json: bool, only: Tag | None, quick: bool, parent: Path | None, write: bool | None) -> None:
    """Measure the services and the queue, each part on its own, against other queues and the machine.

    Starts a durable Postgres of its own under TMPDIR. Exits 0 only if every bar is met.
    """
    has_page = PAGE.parent.is_dir()
    if write and only:
        raise click.UsageError("--write needs a whole run: with --only most of the page would be gone")
    if write and not has_page:
        raise click.ClickException("--write needs a checkout: there is no docs folder beside this package")
    if parent and not (parent / ".venv/bin/python").exists():
        raise click.UsageError(f"--parent {parent} has no .venv: run `make setup` there")
    if write is None:
        write = has_page and not (only or quick)
    try:
        _perform((only,) if only else TAGS, QUICK if quick else FULL, parent, as_json, write)
    except ModuleNotFoundError as missing:
        raise click.ClickException(f"{missing}; the bench needs a checkout and `make setup`") from missing


def _perform(tags: tuple[Tag, ...], counts: Counts, parent: Path | None, as_json: bool, write: bool) -> None:
    import msgspec  # here, not above: --help needs none of these
    import uvloop
    from autopost_cli.embedded.processes import BackendError

    from autopost_bench.machine.server import BenchError
    from autopost_bench.report.report import as_page, as_text

    try:
        found = uvloop.run(run(tags, counts, parent))
    except (BenchError, BackendError) as error:
        raise click.ClickException(str(error)) from error
    click.echo(msgspec.json.encode(found) if as_json else as_text(found))
    if write:
        PAGE.write_text(as_page(found))
    sys.exit(0 if found.met else 1)


async def run(tags: tuple[Tag, ...], counts: Counts, parent: Path | None = None) -> "Report":
    from autopost_runtime.lifecycle.service import collect_seldom

    from autopost_bench.machine.server import BenchServer, machine, versions
    from autopost_bench.measures.subjects import measure_all
    from autopost_bench.report.figures import Figures
    from autopost_bench.report.report import report

    started, about, figures = time.monotonic(), {"machine": machine()}, Figures()

    def say(text: str) -> None:
        click.echo(f"{time.monotonic() - started:7.1f} s  {text}", err=True)

    collect_seldom()  # as our services do; so the others here have it as good
    async with BenchServer(counts, say, parent) as server:
        await measure_all(server, tags, figures)
        about |= {"settings": await server.settings(), "versions": versions()}
    say("done")
    return report(tags, figures, counts, about | {"seconds": round(time.monotonic() - started)})
