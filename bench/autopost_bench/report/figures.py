"""What was measured: a name, a unit, and one value per repetition."""

from math import ceil
from statistics import median

from msgspec import Struct, field


class Figure(Struct):
    unit: str
    values: list[float] = field(default_factory=list)

    def summary(self) -> dict[str, object]:
        return {
            "unit": self.unit,
            "median": median(self.values),
            "spread": spread(self.values),
            "values": self.values,
        }


class Figures:
    """Repetitions are recorded in turn, so the n-th values of two figures were measured beside each other."""

    def __init__(self) -> None:
        self.by_name: dict[str, Figure] = {}

    def record(self, name: str, value: float, unit: str = "per second") -> None:
        self.by_name.setdefault(name, Figure(unit)).values.append(value)

    def values(self, name: str) -> list[float]:
        return self.by_name[name].values

    def ratios(self, name: str, to: str) -> list[float]:
        """Pair by pair: what disturbs the machine for a while disturbs both of a pair."""
        return [one / other for one, other in zip(self.values(name), self.values(to), strict=True)]

    def summary(self) -> dict[str, dict[str, object]]:
        return {name: figure.summary() for name, figure in self.by_name.items()}


def spread(values: list[float]) -> float:
    """From the least to the greatest, as a part of the median."""
    middle = median(values)
    return (max(values) - min(values)) / middle if middle else max(values) - min(values)


def percentile(values: list[float], part: float) -> float:
    """The value that ``part`` of them do not exceed."""
    return sorted(values)[max(0, ceil(len(values) * part) - 1)]
