"""The bars: all that were asked for, and arithmetic that a bad repetition cannot bend."""

import msgspec
import pytest
from autopost_bench.counts import FULL, QUICK
from autopost_bench.measures.subjects import SUBJECTS, calls
from autopost_bench.report.bars import BARS, Bar, judge
from autopost_bench.report.figures import Figures, percentile, spread
from autopost_bench.report.meanings import MEANINGS
from autopost_bench.report.report import Report, as_page, as_text, plain, report

ASKED = {
    "queue": [
        *((1.4, 2.0), (38, 80), (0.6, 0.8), (0.35, 0.6), (1.0, 2.0), (0.9, 1.2)),
        *(
            (1.3, 1.1),
            (1.3, 1.1),
            (1.3, 1.1),
            (1.5, 1.1),
            (1.5, 1.1),
            (1.0, 0.5),
            (5.0, 1.0),
            (0.5, 0.8),
            (0.99, 0.999),
            (0, 0),
            (0, 0),
        ),
    ],
    "dispatch": [(0.75, 0.9), (0.95, 1.2), (3.6, 1.5), (3.8, 2)],
    "ingest": [(0.5, 0.8), (0.3, 0.6)],
    "tenants": [
        *((0.99, 0.998), (0.99, 0.998), (0.97, 1.0), (1.2, 1.1), (0.4, 0.55), (1.3, 1.1), (3, 1.5)),
        *((0.99, 0.998), (0.01, 0.005), (20, 10), (0.97, 1.1), (0.97, 1.1), (1.05, 0.9), (0, 0), (0, 0)),
    ],
    "stream": [(5_000, 10_000), (30_000, 18_000), (2, 1.2), (2.5, 1.5), (3, 2), (0.2, 0.4)],
    "bot": [(2, 0.5), (2.5, 1.5), (3, 2), (0.25, 0.5), (1.3, 1.1), (0.95, 1.2), (200, 50)],
    "publications": [
        *((250, 60), (1_000, 250), (3_000, 2_300), (0, 0), (0.99, 0.999), (0, 0), (0, 0), (0.98, 0.995)),
    ],
}
ABOUT = {
    "machine": {"cores": 2, "memory_gb": 8.0, "load_average": 0.1},
    "settings": {"fsync": "on", "synchronous_commit": "on"},
    "versions": {"pgqueuer": "1.6.0"},
}


def figures_of(**values: list[float]) -> Figures:
    figures = Figures()
    for name, several in values.items():
        for value in several:
            figures.record(name, value)
    return figures


def all_figures(value: float = 1.0) -> Figures:
    names = {name for bar in BARS for name in (bar.figure, bar.to) if name}
    return figures_of(**{name: [value] * 3 for name in sorted(names)})


def test_every_bar_that_was_asked_for_is_there():
    found = {tag: [(bar.least, bar.star) for bar in BARS if bar.tag == tag] for tag in ASKED}

    assert found == ASKED


def test_every_bar_is_explained_to_a_visitor():
    assert {bar.name for bar in BARS} == MEANINGS.keys()


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (84_820.4, "84,820"),
        (1_000, "1,000"),
        (123.456, "123.5"),
        (12.34, "12.34"),
        (0.9987, "0.999"),
        (2.0, "2"),
        (0, "0"),
    ],
)
def test_a_number_is_shown_as_one_writes_it(value, shown):
    assert plain(value) == shown


@pytest.mark.parametrize("bar", BARS, ids=lambda bar: bar.name)
def test_a_star_is_never_easier_than_the_least(bar):
    assert bar.star <= bar.least if bar.at_most else bar.star >= bar.least


def test_a_ratio_is_made_of_figures_measured_beside_each_other():
    slow_second = figures_of(ours=[200, 100, 220], theirs=[100, 50, 100])

    judged = judge(Bar("queue", "ours ÷ theirs", "ours", "theirs", 2.0, 3.0), slow_second)

    assert (judged.value, judged.spread, judged.met) == (2.0, pytest.approx(0.1), True)


def test_a_cost_is_met_from_below():
    bar = Bar("queue", "cost", "cost", None, 1.3, 1.1, at_most=True)

    assert judge(bar, figures_of(cost=[1.3])).met
    assert not judge(bar, figures_of(cost=[1.31])).met


def test_one_violation_in_one_repetition_is_not_forgiven():
    bar = next(bar for bar in BARS if bar.figure == "slots.ledger_violations")

    judged = judge(bar, figures_of(**{bar.figure: [0, 1, 0]}))

    assert (judged.value, judged.met) == (1, False)


def test_the_spread_is_a_part_of_the_median_and_survives_zeros():
    assert spread([90, 100, 120]) == pytest.approx(0.3)
    assert spread([0, 0, 0]) == 0


@pytest.mark.parametrize("part, expected", [(0.5, 50), (0.99, 99), (1, 100), (0, 1)])
def test_a_percentile_is_one_of_the_values(part, expected):
    assert percentile([float(number) for number in range(100, 0, -1)], part) == expected


def test_the_report_has_the_shape_that_tools_read():
    found = msgspec.json.decode(msgspec.json.encode(report(["ingest"], all_figures(), QUICK, ABOUT)))

    assert set(found) == {"bars", "raw"}
    assert [set(bar) for bar in found["bars"]] == [{"tag", "name", "value", "spread", "least", "star", "met"}] * 2
    assert {"figures", "settings", "versions", "machine", "counts", "date"} <= set(found["raw"])


def test_all_is_met_only_when_every_bar_is():
    good = report(["ingest"], all_figures(), QUICK, ABOUT)
    bad = Report([*good.bars, msgspec.structs.replace(good.bars[0], met=False)], good.raw)

    assert (good.met, bad.met) == (True, False)


def test_the_table_and_the_page_name_every_bar_and_every_figure():
    found = report(list(ASKED), all_figures(), FULL, ABOUT)

    for text in (as_text(found), as_page(found)):
        assert all(bar.name in text for bar in BARS)
        assert all(name in text for name in found.raw["figures"])
        assert "fsync on" in text


def test_without_another_checkout_the_bars_against_it_are_left_out():
    figures = all_figures()
    for name in [name for name in figures.by_name if name.startswith(("tenants.own.", "tenants.parent."))]:
        del figures.by_name[name]

    found = report(["tenants"], figures, QUICK, ABOUT)

    left_out = {bar.name for bar in BARS if bar.tag == "tenants"} - {bar.name for bar in found.bars}
    assert left_out == {bar.name for bar in BARS if bar.needs_parent}
    assert len(left_out) == 3


def test_repetitions_go_round_by_round():
    order = [subject.module.rpartition(".")[2] for subject in calls(("queue",), 3)]

    assert order[: len(order) // 3].count("drain") == 1
    assert (order.count("drain"), order.count("growth"), order.count("ingest")) == (3, 1, 0)


def test_quick_asks_the_same_questions():
    assert (QUICK.channels, QUICK.repetitions, QUICK.backlog) == (FULL.channels, FULL.repetitions, FULL.backlog)
    assert all(subject.tags for subject in SUBJECTS)
