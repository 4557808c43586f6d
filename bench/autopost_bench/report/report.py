"""What a run found, as one object, as a table, and as a page of the docs."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from autopost_bench.counts import Counts
from autopost_bench.report.bars import BARS, Judged, Tag, judge
from autopost_bench.report.figures import Figures
from autopost_bench.report.meanings import MEANINGS

BARS_HEAD = ("tag", "figure", "value", "spread", "least", "★", "met")
RAW_HEAD = ("measured", "median", "spread", "unit")

Row = tuple[str, ...]


class Report(msgspec.Struct, frozen=True):
    """The object that ``--json`` prints."""

    bars: list[Judged]
    raw: dict[str, Any]

    @property
    def met(self) -> bool:
        return all(bar.met for bar in self.bars)


def report(tags: Sequence[Tag], figures: Figures, counts: Counts, about: dict[str, Any]) -> Report:
    """``about``: the settings, the versions and the machine."""
    raw = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        **about,
        "counts": msgspec.to_builtins(counts),
        "figures": figures.summary(),
    }
    wanted = [bar for bar in BARS if bar.tag in tags and not (bar.needs_parent and bar.figure not in figures.by_name)]
    return Report([judge(bar, figures) for bar in wanted], raw)


def as_text(found: Report) -> str:
    parts = (_aligned([BARS_HEAD, *_bars(found)]), _aligned([RAW_HEAD, *_raw(found)]), _about(found))
    return "\n\n".join("\n".join(lines) for lines in parts)


def as_page(found: Report) -> str:
    """docs/benchmarks.md"""
    return "\n".join(
        (
            "# Benchmarks",
            "",
            f"Written by `autopost bench` on {found.raw['date'][:10]}. Every bar is a ratio of two figures of",
            "the same run, measured side by side; the value is the middle one of its repetitions, the spread from the",
            "least to the greatest as a part of it.",
            "",
            *(f"- {line}" for line in _about(found)),
            "",
            *_markdown([BARS_HEAD, *_bars(found)]),
            "",
            "## What the bars mean",
            "",
            *(f"- **{name}**: {MEANINGS[name]}" for name in dict.fromkeys(bar.name for bar in found.bars)),
            "",
            "## What was measured",
            "",
            *_markdown([RAW_HEAD, *_raw(found)]),
            "",
        )
    )


def _bars(found: Report) -> Iterable[Row]:
    for bar in found.bars:
        numbers = (plain(bar.value), f"{bar.spread:.0%}", f"{bar.least:g}", f"{bar.star:g}")
        yield (bar.tag, bar.name, *numbers, _verdict(bar))


def _verdict(bar: Judged) -> str:
    if not bar.met:
        return "no"
    starred = bar.value <= bar.star if bar.star < bar.least or bar.least == 0 else bar.value >= bar.star
    return "★" if starred else "yes"


def _raw(found: Report) -> Iterable[Row]:
    for name, figure in found.raw["figures"].items():
        yield (name, plain(figure["median"]), f"{figure['spread']:.0%}", figure["unit"])


def plain(value: float) -> str:
    """As one would write it by hand: never with an exponent."""
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3f}".rstrip("0").rstrip(".") if abs(value) < 10 else f"{value:.4g}"


def _about(found: Report) -> list[str]:
    raw = found.raw
    return [
        f"machine: {_listed(raw['machine'])}",
        f"Postgres: {_listed(raw['settings'])}",
        f"versions: {_listed(raw['versions'])}",
        f"counts: {_listed(raw['counts'])}",
    ]


def _listed(values: dict[str, Any]) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in values.items())


def _aligned(rows: Sequence[Row]) -> list[str]:
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _markdown(rows: Sequence[Row]) -> list[str]:
    head, *rest = (f"| {' | '.join(row)} |" for row in rows)
    return [head, f"|{'---|' * len(rows[0])}", *rest]
