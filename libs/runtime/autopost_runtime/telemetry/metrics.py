"""Metrics kept as plain numbers and rendered as Prometheus text on request.

A count takes less than a microsecond, so every delivery can be counted; the SDK took twenty. Metrics are global to the
process: there is no setup and no shutdown.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import ClassVar

from msgspec import Struct
from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)

Labels = Mapping[str, str | int | bool]
_Key = tuple[tuple[str, str | int | bool], ...]


class Observation(Struct, frozen=True):
    """One reading of a gauge."""

    value: float
    labels: Labels = {}


Readings = float | Iterable[Observation]


class Counter:
    kind: ClassVar[str] = "counter"

    def __init__(self, name: str, description: str) -> None:
        self.name, self.description = name.removesuffix("_total"), description
        self._totals: dict[_Key, float] = {}

    def add(self, amount: float, labels: Labels | None = None) -> None:
        key = tuple(labels.items()) if labels else ()
        self._totals[key] = self._totals.get(key, 0) + amount

    def forget(self) -> None:
        self._totals.clear()

    def read(self) -> Metric:
        family = CounterMetricFamily(self.name, self.description)
        for key, total in list(self._totals.items()):
            family.add_sample(f"{self.name}_total", _label_texts(key), total)
        return family


class Series:
    """The data of a histogram for one set of labels; frequent callers keep a reference."""

    __slots__ = ("counts", "total")

    def __init__(self) -> None:
        self.forget()

    def record(self, seconds: float) -> None:
        self.counts[bisect_left(SECONDS, seconds)] += 1
        self.total += seconds

    def forget(self) -> None:
        self.counts, self.total = [0] * (len(SECONDS) + 1), 0.0


class Histogram:
    """A histogram of seconds."""

    kind: ClassVar[str] = "histogram"

    def __init__(self, name: str, description: str) -> None:
        self.name, self.description = name, description
        self._series: dict[_Key, Series] = {}

    def of(self, labels: Labels | None = None) -> Series:
        key = tuple(labels.items()) if labels else ()
        series = self._series.get(key)
        if series is None:
            series = self._series[key] = Series()
        return series

    def record(self, seconds: float, labels: Labels | None = None) -> None:
        self.of(labels).record(seconds)

    def forget(self) -> None:
        for series in self._series.values():
            series.forget()

    def read(self) -> Metric:
        family = HistogramMetricFamily(self.name, self.description)
        for key, series in [(key, one) for key, one in self._series.items() if any(one.counts)]:
            labels, below = _label_texts(key), 0
            for bound, count in zip((*map(str, SECONDS), "+Inf"), series.counts, strict=True):
                below += count
                family.add_sample(f"{self.name}_bucket", {"le": bound, **labels}, below)
            family.add_sample(f"{self.name}_count", labels, below)
            family.add_sample(f"{self.name}_sum", labels, series.total)
        return family


class Gauge:
    kind: ClassVar[str] = "gauge"

    def __init__(self, name: str, description: str, callback: Callable[[], Readings]) -> None:
        self.name, self.description, self.callback = name, description, callback

    def read(self) -> Metric:
        family = GaugeMetricFamily(self.name, self.description)
        readings = self.callback()
        for one in [Observation(readings)] if isinstance(readings, int | float) else readings:
            family.add_sample(self.name, _label_texts(tuple(one.labels.items())), one.value)
        return family


class _Collector:
    def collect(self) -> Iterator[Metric]:
        for instrument in list(_instruments.values()):
            yield instrument.read()


_instruments: dict[str, Counter | Histogram | Gauge] = {}
_registry = CollectorRegistry()
_registry.register(_Collector())
ProcessCollector(registry=_registry)


def counter(name: str, description: str = "") -> Counter:
    """Returns the instrument of this name; safe to call at import."""
    found = _instruments.setdefault(name, Counter(name, description))
    if not isinstance(found, Counter):
        raise TypeError(f"{name} is already a {found.kind}")
    return found


def histogram(name: str, description: str = "") -> Histogram:
    found = _instruments.setdefault(name, Histogram(name, description))
    if not isinstance(found, Histogram):
        raise TypeError(f"{name} is already a {found.kind}")
    return found


def gauge(name: str, description: str, callback: Callable[[], Readings]) -> None:
    """``callback`` runs at each scrape and returns a number or one ``Observation`` per label set. The last one wins."""
    found = _instruments.setdefault(name, Gauge(name, description, callback))
    if not isinstance(found, Gauge):
        raise TypeError(f"{name} is already a {found.kind}")
    found.callback = callback


def forget() -> None:
    """Reset all counts, as after a restart."""
    for instrument in _instruments.values():
        if not isinstance(instrument, Gauge):
            instrument.forget()


def render() -> bytes:
    return generate_latest(_registry)


def _label_texts(key: _Key) -> dict[str, str]:
    return {name: str(value) for name, value in sorted(key)}
