"""One post is one trace: from the HTTP request through the queue to the provider call."""

from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from autopost_cli.development import TOKENS
from harness.eventually import eventually

from e2e.conftest import StartSystem

Span = dict[str, Any]

CALLS = {"telegram sendMessage", "max POST /messages"}


def _spans(folder: Path) -> Iterator[Span]:
    for path in folder.glob("*.jsonl"):
        for line in path.read_bytes().split(b"\n")[:-1]:  # what comes after the last end is still being written
            for resource in msgspec.json.decode(line)["resourceSpans"]:
                for scope in resource["scopeSpans"]:
                    yield from scope["spans"]


@pytest.mark.parametrize("nats", ["shared", "off"])
async def test_the_spans_of_a_post_form_one_trace_on_both_platforms(
    nats: str, start_system: StartSystem, tmp_path: Path
) -> None:
    without_nats = {"AUTOPOST_NATS_URL": "off"} if nats == "off" else {}
    system = await start_system(AUTOPOST_TRACE_DIR=str(tmp_path / "traces"), **without_nats)
    incoming = "4bf92f3577b34da6a3ce929d0e0e4736"

    answer = await system.http.post(
        f"{system.places['ingest']}/v1/posts",
        headers={
            "Authorization": "Bearer demo-push-secret-for-development",
            "traceparent": f"00-{incoming}-00f067aa0ba902b7-01",
        },
        json={"text": "traced"},
    )

    assert answer.json()["trace_id"] == incoming

    def told() -> dict[str, Span] | None:
        """Each service writes its spans when it likes: ingest perhaps after the calls that its post led to."""
        spans = {span["spanId"]: span for span in _spans(tmp_path / "traces")}
        count = Counter(span["name"] for span in spans.values() if span["traceId"] == incoming)
        whole = count["POST /v1/posts"] == 1 and count["deliver"] == sum(count[name] for name in CALLS) == 40
        return spans if whole else None

    spans = await eventually(told, within=timedelta(minutes=1))
    provider_calls = [span for span in spans.values() if span["name"] in CALLS]
    for call in provider_calls:
        deliver = spans[call["parentSpanId"]]
        enqueue = spans[deliver["parentSpanId"]]
        server = spans[enqueue["parentSpanId"]]
        claim = spans[deliver["links"][0]["spanId"]]
        assert [span["name"] for span in (server, enqueue, claim, deliver)] == [
            "POST /v1/posts",
            "enqueue",
            "claim_deliveries",
            "deliver",
        ]
        assert {span["traceId"] for span in (server, enqueue, deliver, call)} == {incoming}
        assert claim["traceId"] != incoming
        assert enqueue["spanId"] in {link["spanId"] for link in claim["links"]}
    assert {call["name"] for call in provider_calls} == CALLS


async def test_no_token_is_in_a_span_or_a_log(start_system: StartSystem, tmp_path: Path) -> None:
    system = await start_system(AUTOPOST_TRACE_DIR=str(tmp_path / "traces"), AUTOPOST_LOG_LEVEL="debug")
    await system.control("faults", {"name": "bad", "platform": "telegram", "times": 3, "effect": {"html": 502}})

    await system.post(text="canaries")

    async def all_tried() -> bool:
        return (await system.statuses()).get("queued", 0) == 0

    await eventually(all_tried, within=timedelta(minutes=1))
    await system.stack.stop("dispatcher")
    written = b"".join(
        path.read_bytes() for folder in ("traces", "stack/logs") for path in (tmp_path / folder).glob("*")
    )
    assert b"delivery.attempted" in written
    assert [name for name, token in TOKENS.items() if token.encode() in written] == []
