"""Raw payloads: whole but for their secrets, bounded, and never a burden to what they belong to."""

import asyncio
import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from autopost_runtime.config.load import Secret
from autopost_runtime.storage.objects import open_objects
from autopost_runtime.storage.payloads import AT_ONCE, LARGEST, MARGIN, REST, Payload, Payloads, harmless, readable
from autopost_runtime.telemetry import metrics

WORKSPACE = uuid4()
TOKEN = "7000001:AAcanary-canary_canary-canary_0123456"
SOON, PLENTY = timedelta(milliseconds=50), timedelta(minutes=1)


class FakeStore:
    """A store that does what it is told."""

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, Any]] = {}
        self.encryption: list[str | None] = []
        self.error: Exception | None = None
        self.gate = asyncio.Event()
        self.gate.set()
        self.full = asyncio.Event()
        self.asked = self.inside = self.most = 0

    async def put(self, key: str, body: bytes, content_type: str, *, encryption: str | None = None) -> None:
        self.asked += 1
        self.inside += 1
        self.most = max(self.most, self.inside)
        if self.inside >= AT_ONCE:
            self.full.set()
        try:
            await self.gate.wait()
            if self.error:
                raise self.error
        finally:
            self.inside -= 1
        self.encryption.append(encryption)
        self.objects[key] = json.loads(body)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def answer(body: str | bytes = "no", **fields: Any) -> Payload:
    raw = body.encode() if isinstance(body, str) else body
    given = {"kind": "provider_answer", "about": {"attempt": 1}, "status": 400}
    return Payload(**(given | {"body": readable(raw), "size": len(raw)} | fields))


def counted(stored: bool) -> float:
    found = re.findall(rf'autopost_payloads_total{{kind="provider_answer",stored="{stored}"}} (\S+)', _rendered())
    return float(found[0]) if found else 0


def _rendered() -> str:
    return metrics.render().decode()


@pytest.fixture(autouse=True)
def _count_anew() -> None:
    metrics.forget()


async def test_it_lies_below_its_workspace_by_day_and_says_what_it_is() -> None:
    store = FakeStore()

    ref = await Payloads(store, "dispatcher").keep(WORKSPACE, answer('{"ok":false}', headers={"Server": "nginx"}))

    [(key, found)] = store.objects.items()
    assert ref == key
    assert re.fullmatch(rf"{WORKSPACE}/payloads/{datetime.now(UTC):%Y/%m/%d}/[0-9a-f-]{{36}}", key)
    assert found.pop("at").startswith(f"{datetime.now(UTC):%Y-%m-%d}")
    assert found == {
        "service": "dispatcher",
        "kind": "provider_answer",
        "about": {"attempt": 1},
        "status": 400,
        "headers": {"server": "nginx"},
        "body": '{"ok":false}',
        "cut": None,
    }


async def test_secrets_are_gone_and_people_are_not() -> None:
    store = FakeStore()
    own = 'an "own" secret/0123'
    body = (
        f'{TOKEN} {own} an%20%22own%22%20secret%2F0123 {json.dumps(own)} Bearer xyz +7 900 123-45-67 a@b.ru "token":"t"'
    )

    await Payloads(store, "ingest").keep(WORKSPACE, answer(body), secrets=(own,))

    [found] = store.objects.values()
    assert found["body"] == '*** *** *** "***" Bearer *** +7 900 123-45-67 a@b.ru "token":"***"'


def test_of_the_headers_only_the_harmless_are_kept() -> None:
    headers = {"Content-Type": "text/html", "Set-Cookie": "a=b", "Authorization": "x", "X-Webhook-Secret": "y"}

    assert harmless(headers) == {"content-type": "text/html"}


async def test_bytes_that_are_no_text_stay_recognisable() -> None:
    store = FakeStore()

    await Payloads(store, "dispatcher").keep(WORKSPACE, answer(b"\xff\x00ok"))

    assert [one["body"] for one in store.objects.values()] == ["\\xff\x00ok"]


@pytest.mark.parametrize("more", [0, 1, MARGIN, MARGIN + 1, 5 * LARGEST])
async def test_a_large_body_is_cut_and_says_so(more: int) -> None:
    store = FakeStore()

    await Payloads(store, "dispatcher").keep(WORKSPACE, answer("я" * (LARGEST // 2) + "x" * more))

    [found] = store.objects.values()
    assert LARGEST - MARGIN <= len(found["body"].encode()) <= LARGEST
    assert found["cut"] == (f"truncated; the whole body has {LARGEST + more} bytes" if more else None)


@pytest.mark.parametrize(
    "place", [*range(LARGEST - 45, LARGEST + 2, 4), *range(LARGEST + MARGIN - 45, LARGEST + MARGIN + 2, 4)]
)
async def test_no_half_of_a_secret_stays_where_a_body_is_cut(place: int) -> None:
    store = FakeStore()
    own = "own_secret_0123456789"

    for secret in (TOKEN, own):
        body = "-" * (place - 1) + " " + secret + " " + "-" * LARGEST
        await Payloads(store, "dispatcher").keep(WORKSPACE, answer(body), secrets=(own,))

    for found in store.objects.values():
        assert found["body"].strip("-* ") == ""


@pytest.mark.parametrize("shift", range(0, len(TOKEN) + 1, 6))
async def test_no_half_of_a_secret_stays_where_many_before_it_went(shift: int) -> None:
    """The clean text is short enough by then, but it still ends where the bytes were cut."""
    store = FakeStore()

    await Payloads(store, "dispatcher").keep(WORKSPACE, answer("-" * shift + f" {TOKEN}" * (2 * LARGEST // len(TOKEN))))

    [found] = store.objects.values()
    assert found["body"].strip("-* ") == ""
    assert found["cut"]


async def test_encryption_is_asked_for_when_configured() -> None:
    store = FakeStore()

    await Payloads(store, "dispatcher").keep(WORKSPACE, answer())
    await Payloads(store, "dispatcher", encryption="AES256").keep(WORKSPACE, answer())

    assert store.encryption == [None, "AES256"]


async def test_a_store_that_is_away_costs_the_payload_and_is_counted() -> None:
    store = FakeStore()
    store.error = ConnectionError()

    ref = await Payloads(store, "dispatcher").keep(WORKSPACE, answer())

    assert (ref, counted(stored=False), counted(stored=True)) == (None, 1, 0)


async def test_a_store_that_hangs_is_given_up_and_left_alone_for_a_while() -> None:
    store, clock = FakeStore(), Clock()
    store.gate.clear()
    payloads = Payloads(store, "dispatcher", now=clock)

    hung = await payloads.keep(WORKSPACE, answer(), within=SOON)
    at_once = await payloads.keep(WORKSPACE, answer(), within=timedelta(seconds=5))
    asked_while_resting = store.asked
    store.gate.set()
    clock.now = REST.total_seconds()
    kept = await payloads.keep(WORKSPACE, answer(), within=SOON)

    assert (hung, at_once, asked_while_resting) == (None, None, 1)
    assert kept in store.objects
    assert (counted(stored=False), counted(stored=True)) == (2, 1)


async def test_only_a_few_are_stored_at_once() -> None:
    store = FakeStore()
    store.gate.clear()
    payloads = Payloads(store, "dispatcher")

    keeping = [asyncio.create_task(payloads.keep(WORKSPACE, answer(), within=PLENTY)) for _ in range(5 * AT_ONCE)]
    await store.full.wait()
    store.gate.set()
    await asyncio.gather(*keeping)

    assert (store.most, len(store.objects)) == (AT_ONCE, 5 * AT_ONCE)


async def test_without_a_store_nothing_is_kept_and_nothing_is_missed() -> None:
    assert await Payloads(None, "dispatcher").keep(WORKSPACE, answer()) is None
    assert counted(stored=False) == 0


async def test_a_real_store_takes_it_encrypted_or_not(configure: Any, s3: Any) -> None:
    config = configure(
        s3_endpoint=s3.endpoint,
        s3_bucket=s3.bucket,
        s3_access_key=Secret(s3.access_key),
        s3_secret_key=Secret(s3.secret_key),
    )
    async with open_objects(config) as objects:
        for encryption in ("off", "AES256"):
            payloads = Payloads(objects, "dispatcher", encryption=encryption)
            ref = await payloads.keep(WORKSPACE, answer("да"), within=PLENTY)

            assert ref is not None
            assert json.loads(await objects.get(ref))["body"] == "да"
