"""Traces and metrics: what leaves the process, and what never does."""

import json
import socket
import time
from datetime import timedelta

import pytest
from autopost_runtime.http.client import HttpClient, HttpError
from autopost_runtime.telemetry import tracing as telemetry
from opentelemetry import trace
from runtime.support.canary import CANARY


@pytest.fixture
def exported(configure, tmp_path):
    """Ends telemetry and gives back what was written, as text and as spans."""
    telemetry.setup("test", configure(trace_dir=tmp_path / "traces"))

    def read() -> tuple[str, list[dict]]:
        telemetry.shutdown()
        (file,) = (tmp_path / "traces").glob("test-*.jsonl")
        text = file.read_text()
        batches = [json.loads(line) for line in text.splitlines()]
        scopes = [scope for batch in batches for one in batch["resourceSpans"] for scope in one["scopeSpans"]]
        return text, [span for scope in scopes for span in scope["spans"]]

    yield read
    telemetry.shutdown()


def test_spans_are_written_as_json_lines_under_the_service_name(exported):
    with telemetry.tracer().start_as_current_span("enqueue"):
        pass

    text, spans = exported()

    assert [span["name"] for span in spans] == ["enqueue"]
    assert '"autopost-test"' in text


def test_no_token_leaves_in_a_span(exported):
    with (
        pytest.raises(ValueError, match="leak"),
        telemetry.tracer().start_as_current_span(
            f"POST /bot{CANARY}/x",
            attributes={"url.full": f"https://host/bot{CANARY}/x", "list": [CANARY], "token": "short"},
        ) as span,
    ):
        span.add_event(CANARY, {"said": CANARY})
        span.set_status(trace.StatusCode.ERROR, CANARY)
        raise ValueError(f"leak {CANARY}")

    text, spans = exported()

    assert len(spans) == 1
    assert CANARY.split(":")[1] not in text
    assert "short" not in text


async def test_a_provider_call_is_a_client_span_without_the_url(exported, unused_tcp_port):
    async with HttpClient() as client:
        with pytest.raises(HttpError):
            await client.request(
                "POST",
                f"http://127.0.0.1:{unused_tcp_port}/bot{CANARY}/sendMessage",
                timeout=timedelta(seconds=2),
                span_name="telegram sendMessage",
                template="/bot{token}/sendMessage",
            )

    text, (span,) = exported()

    attributes = {one["key"]: next(iter(one["value"].values())) for one in span["attributes"]}
    assert CANARY not in text
    assert span["name"] == "telegram sendMessage"
    assert attributes == {
        "http.request.method": "POST",
        "server.address": "127.0.0.1",
        "url.template": "/bot{token}/sendMessage",
        "error.type": "connect",
    }


def test_a_traceparent_goes_out_and_comes_back(exported):
    with telemetry.tracer().start_as_current_span("receive"):
        traceparent = telemetry.current_traceparent()
    with telemetry.tracer().start_as_current_span("send", context=telemetry.context_from(traceparent)):
        pass

    _, spans = exported()

    receive, send = sorted(spans, key=lambda span: span["name"])
    assert send["traceId"] == receive["traceId"] == telemetry.trace_id_of(traceparent)
    assert send["parentSpanId"] == receive["spanId"]


@pytest.mark.parametrize("traceparent", [None, "", "nonsense", f"00-{'0' * 32}-{'0' * 16}-01", "00-" + "a" * 32])
def test_a_bad_traceparent_is_no_trace(traceparent):
    assert telemetry.link_to(traceparent) is None
    assert telemetry.trace_id_of(traceparent) is None
    assert telemetry.context_from(traceparent) == {}


def test_a_link_points_at_the_span_of_the_traceparent():
    link = telemetry.link_to(f"00-{'a' * 32}-{'b' * 16}-01")

    assert link is not None
    assert trace.format_span_id(link.context.span_id) == "b" * 16


def test_without_a_span_there_is_no_traceparent():
    assert telemetry.current_traceparent() is None


def test_a_collector_that_does_not_answer_does_not_hold_up_the_end(configure):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        telemetry.setup("test", configure(otlp_endpoint=f"http://127.0.0.1:{silent.getsockname()[1]}"))
        with telemetry.tracer().start_as_current_span("lost"):
            pass

        started = time.monotonic()
        telemetry.shutdown()
        took = time.monotonic() - started

    assert took < telemetry.FLUSH_LIMIT + 3  # left alone, the exporter takes five seconds
