"""What is measured, in order, and for which tags."""

import importlib
from collections.abc import Awaitable, Callable, Iterator

from msgspec import Struct

from autopost_cli.bench.arena import Arena
from autopost_cli.bench.bars import Tag
from autopost_cli.bench.figures import Figures

Measure = Callable[[Arena, Figures], Awaitable[None]]


class Subject(Struct, frozen=True):
    """``repeats``: one call is one repetition. The others repeat by themselves, because their start is dear."""

    module: str
    tags: tuple[Tag, ...]
    repeats: bool = True

    @property
    def measure(self) -> Measure:
        """Loaded when it is used: peers are not installed everywhere."""
        measure: Measure = importlib.import_module(f"autopost_cli.bench.{self.module}").measure
        return measure


SUBJECTS = (
    Subject("peers_procrastinate", ("queue",)),
    Subject("beside", ("queue",)),
    Subject("drain", ("queue",)),
    Subject("snapshot_held", ("queue",)),
    Subject("dispatch", ("dispatch",)),
    Subject("growth", ("queue",), repeats=False),
    Subject("slots", ("queue",), repeats=False),
    Subject("latency", ("dispatch",), repeats=False),
    Subject("ingest", ("ingest",), repeats=False),
)


def calls(tags: tuple[Tag, ...], repetitions: int) -> Iterator[Subject]:
    """Repetition by repetition, so that what is compared is measured close together."""
    wanted = [subject for subject in SUBJECTS if set(subject.tags) & set(tags)]
    for _ in range(repetitions):
        yield from (subject for subject in wanted if subject.repeats)
    yield from (subject for subject in wanted if not subject.repeats)


async def measure_all(arena: Arena, tags: tuple[Tag, ...], figures: Figures) -> None:
    for subject in calls(tags, arena.counts.repetitions):
        await subject.measure(arena, figures)
