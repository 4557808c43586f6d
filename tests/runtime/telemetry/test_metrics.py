"""What is counted is what a scrape reads."""

import pytest
from autopost_runtime.telemetry import metrics
from prometheus_client.parser import text_string_to_metric_families


def test_a_histogram_is_in_seconds_with_our_buckets(measured):
    seconds = metrics.histogram("autopost_test_seconds", "How long.")
    for took in (0.003, 0.005, 60):
        seconds.record(took, {"platform": "telegram"})

    text = measured()

    assert 'autopost_test_seconds_bucket{le="0.0025",platform="telegram"} 0.0' in text
    assert 'autopost_test_seconds_bucket{le="0.005",platform="telegram"} 2.0' in text
    assert 'autopost_test_seconds_bucket{le="10.0",platform="telegram"} 2.0' in text
    assert 'autopost_test_seconds_bucket{le="+Inf",platform="telegram"} 3.0' in text
    assert 'autopost_test_seconds_count{platform="telegram"} 3.0' in text
    assert 'autopost_test_seconds_sum{platform="telegram"} 60.008' in text


def test_who_keeps_a_series_counts_into_the_same_histogram(measured):
    seconds = metrics.histogram("autopost_test_kept_seconds", "How long.")
    kept = seconds.of({"platform": "max"})
    kept.record(0.5)

    metrics.forget()
    assert "autopost_test_kept_seconds_count" not in measured()
    kept.record(0.5)
    seconds.record(0.25, {"platform": "max"})

    assert 'autopost_test_kept_seconds_count{platform="max"} 2.0' in measured()
    assert 'autopost_test_kept_seconds_sum{platform="max"} 0.75' in measured()


def test_a_counter_adds_up_per_label_set(measured):
    counted = metrics.counter("autopost_test_counted", "Counted.")
    counted.add(2)
    counted.add(1, {"verdict": "sent"})
    counted.add(1, {"verdict": "sent"})

    assert "autopost_test_counted_total 2.0" in measured()
    assert 'autopost_test_counted_total{verdict="sent"} 2.0' in measured()


def test_a_counter_named_total_is_not_a_total_of_totals(measured):
    metrics.counter("autopost_test_named_total").add(1)

    assert "autopost_test_named_total 1.0" in measured()


def test_one_name_is_one_instrument_of_one_kind():
    assert metrics.counter("autopost_test_one") is metrics.counter("autopost_test_one")
    with pytest.raises(TypeError, match="already a counter"):
        metrics.histogram("autopost_test_one")
    with pytest.raises(TypeError, match="already a counter"):
        metrics.gauge("autopost_test_one", "One.", lambda: 1)


def test_a_gauge_asks_at_each_scrape_and_the_last_callback_counts(measured):
    metrics.gauge("autopost_test_depth", "Depth.", lambda: 1)
    metrics.gauge("autopost_test_depth", "Depth.", lambda: [metrics.Observation(7, {"status": "queued"})])

    assert 'autopost_test_depth{status="queued"} 7.0' in measured()


def test_a_scrape_is_what_prometheus_reads(measured):
    metrics.histogram("autopost_test_parsed_seconds").record(0.5, {"code": 'a "quoted"\nlabel'})

    families = {family.name: family for family in text_string_to_metric_families(measured())}

    assert families["autopost_test_parsed_seconds"].type == "histogram"
    assert "process_resident_memory_bytes" in families
