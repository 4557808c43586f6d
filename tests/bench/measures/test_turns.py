"""Two sides in turns: what changes steadily meanwhile cancels out, and a turn counts by the time it took."""

import pytest
from autopost_bench.measures.turns import in_turns
from autopost_bench.report.figures import Figures


async def test_a_machine_that_grows_slower_does_it_to_both() -> None:
    order, seconds_each = [], iter([1.0, 2.0, 3.0, 4.0])
    figures = Figures()

    async def one() -> dict[str, float]:
        order.append("one")
        return {"one": 1 / next(seconds_each)}

    async def other() -> dict[str, float]:
        order.append("other")
        return {"other": 1 / next(seconds_each)}

    await in_turns(figures, one, other)

    assert order == ["one", "other", "other", "one"]
    assert figures.ratios("one", "other") == pytest.approx([1.0])
    assert figures.values("one") == pytest.approx([2 / (1 + 4)])
