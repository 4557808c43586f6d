"""One post is one trace: from the HTTP request through the queue to the provider call."""

import time
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
POLL = 2
"""Seconds between polls by default."""


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


CUSTOMER, PHONE, MAIL, WORD = 7_700_112_233, "+79001234567", "ann@people.example", "gooseberryjam"


@pytest.mark.parametrize("nats", ["shared", "off"])
async def test_a_message_of_a_customer_is_one_trace_from_the_webhook_to_the_provider_call(
    nats: str, start_system: StartSystem, tmp_path: Path
) -> None:
    """Without NATS it is answered as well, later by one poll at most."""
    without_nats = {"AUTOPOST_NATS_URL": "off"} if nats == "off" else {}
    system = await start_system(AUTOPOST_TRACE_DIR=str(tmp_path / "traces"), **without_nats)
    incoming = "4bf92f3577b34da6a3ce929d0e0e4736"
    update = {
        "update_type": "message_created",
        "timestamp": int(time.time() * 1000),
        "message": {
            "sender": {"user_id": 7, "name": "Ann"},
            "recipient": {"chat_id": CUSTOMER, "chat_type": "dialog"},
            "body": {"mid": "mid.traced", "text": f"Доставка? {WORD}, {PHONE}, {MAIL}"},
        },
    }

    answer = await system.http.post(
        f"{system.places['ingest']}/v1/bot/max",
        headers={
            "X-Max-Bot-Api-Secret": "demo-bot-secret-for-development",
            "traceparent": f"00-{incoming}-00f067aa0ba902b7-01",
        },
        json=update,
    )
    assert answer.status_code == 200

    def told() -> list[Span] | None:
        spans = [span for span in _spans(tmp_path / "traces") if span["traceId"] == incoming]
        return spans if {"POST /v1/bot/max", "max POST /messages"} <= {span["name"] for span in spans} else None

    spans = {span["spanId"]: span for span in await eventually(told, within=timedelta(minutes=1))}
    path = []
    [here] = [span for span in spans.values() if span["name"] == "max POST /messages"]
    while here is not None:
        path.append(here["name"])
        here = spans.get(here["parentSpanId"])
    assert path == ["max POST /messages", "send", "turn", "POST /v1/bot/max"]
    roots = [span["name"] for span in spans.values() if span["parentSpanId"] not in spans]
    assert roots == ["POST /v1/bot/max"]
    log = await system.database.fetchrow("SELECT ts, meta FROM bot_logs")
    assert log is not None
    assert msgspec.json.decode(log["meta"])["trace_id"] == incoming
    seconds = await system.database.fetchval(
        "SELECT extract(epoch FROM b.sent_at - i.ts)::float8 FROM bot_outbox b JOIN bot_inbox i USING (chat_id)"
    )
    assert seconds < (1 if nats == "shared" else 1 + POLL)
    written = b"".join(path.read_bytes() for path in (tmp_path / "traces").glob("*.jsonl"))
    assert [word for word in (str(CUSTOMER), PHONE, MAIL, WORD) if word.encode() in written] == []


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
