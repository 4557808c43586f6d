"""What is measured, in order, and for which tags."""

import importlib
from collections.abc import Awaitable, Callable, Iterator

from msgspec import Struct

from autopost_bench.machine.server import BenchServer
from autopost_bench.report.bars import Tag
from autopost_bench.report.figures import Figures

Measure = Callable[[BenchServer, Figures], Awaitable[None]]


class Subject(Struct, frozen=True):
    """``repeats``: one call is one repetition. The others repeat by themselves, because their start is dear."""

    module: str
    tags: tuple[Tag, ...]
    repeats: bool = True

    @property
    def measure(self) -> Measure:
        """Loaded when it is used: peers are not installed everywhere."""
        measure: Measure = importlib.import_module(f"autopost_bench.{self.module}").measure
        return measure


SUBJECTS = (
    Subject("peers.procrastinate", ("queue",)),
    Subject("measures.beside", ("queue",)),
    Subject("measures.drain", ("queue",)),
    Subject("measures.snapshot_held", ("queue",)),
    Subject("measures.dispatch", ("dispatch",)),
    Subject("measures.growth", ("queue",), repeats=False),
    Subject("measures.slots", ("queue",), repeats=False),
    Subject("measures.latency", ("dispatch",), repeats=False),
    Subject("measures.ingest", ("ingest",), repeats=False),
    Subject("measures.many_tenants", ("tenants",), repeats=False),
    Subject("measures.beside_tenants", ("tenants",), repeats=False),
    Subject("measures.idle_tenants", ("tenants",), repeats=False),
    Subject("measures.against_parent", ("tenants",), repeats=False),
    Subject("measures.stream", ("stream",), repeats=False),
    Subject("measures.conversations", ("bot",)),
    Subject("measures.bot", ("bot",), repeats=False),
    Subject("measures.publications", ("publications",), repeats=False),
)


def calls(tags: tuple[Tag, ...], repetitions: int) -> Iterator[Subject]:
    """Repetition by repetition, so that what is compared is measured close together."""
    wanted = [subject for subject in SUBJECTS if set(subject.tags) & set(tags)]
    for _ in range(repetitions):
        yield from (subject for subject in wanted if subject.repeats)
    yield from (subject for subject in wanted if not subject.repeats)


async def measure_all(server: BenchServer, tags: tuple[Tag, ...], figures: Figures) -> None:
    for subject in calls(tags, server.counts.repetitions):
        await subject.measure(server, figures)
