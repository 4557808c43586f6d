"""Signed posts (Standard Webhooks): which signatures fit, for how long, how often, and with which secret."""

import asyncio
import base64
import hmac
import os
import sys
import time
from asyncio.subprocess import PIPE, create_subprocess_exec
from collections.abc import AsyncIterator, Callable
from typing import cast
from uuid import UUID, uuid4

import httpx
import pytest
from autopost_ingest.gateway import Gateway
from autopost_ingest.signatures import Claim, Signatures, Unsigned
from autopost_runtime.config import Secret
from autopost_runtime.sealing import Label, SealingKeys
from harness.databases import Database
from harness.eventually import eventually

from ingest.door import DEMO_WORKSPACE, SHOP_WORKSPACE, TABLES
from ingest.opening import OpenDoor, opened

ENDPOINT = "0de00000-0000-4000-8000-0000000000e1"
KEYS = SealingKeys(b"k" * 32)
KEY = base64.b64encode(b"k" * 32).decode()
FIRST, SECOND = ("whsec_" + base64.b64encode(bytes([number]) * 24).decode() for number in (1, 2))
BODY = b'{"text": "signed"}'


def sign(secret: str, name: str, when: int, body: bytes) -> str:
    key = base64.b64decode(secret.removeprefix("whsec_"))
    return "v1," + base64.b64encode(hmac.digest(key, f"{name}.{when}.".encode() + body, "sha256")).decode()


def signed(secret: str = FIRST, name: str = "msg_1", body: bytes = BODY, late: int = 0) -> dict[str, str]:
    when = int(time.time()) - late
    return {"webhook-id": name, "webhook-timestamp": str(when), "webhook-signature": sign(secret, name, when, body)}


class SigningDoor:
    def __init__(self, door: OpenDoor) -> None:
        self.door = door

    async def bind(self, secret: str, name: str = ENDPOINT, workspace: UUID = DEMO_WORKSPACE) -> None:
        sealed = KEYS.seal(Secret(secret), Label(str(workspace), "webhook", name))
        await self.door.sql(
            "SELECT bind_credential($1, 'webhook', $2, 'sealed', $3, NULL, 'test', 'test')", workspace, name, sealed
        )

    async def post(
        self, headers: dict[str, str], body: bytes = BODY, endpoint: str = ENDPOINT, query: str = ""
    ) -> httpx.Response:
        return await self.door.http.post(f"{self.door.url}/v1/posts/{endpoint}{query}", headers=headers, content=body)


@pytest.fixture
async def door(seeded_database: Database) -> AsyncIterator[SigningDoor]:
    async with opened(seeded_database, settings={"keys": KEYS}) as door:
        signing = SigningDoor(door)
        await signing.bind(FIRST)
        yield signing


def test_the_example_of_the_standard_fits() -> None:
    key = base64.b64decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    signature = base64.b64decode("g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=")
    claim = Claim(id="msg_p5jXN8AQM9LWM0D4loKWxJek", timestamp="1614265330", signatures=(signature,))

    assert claim.fits(key, b'{"test": 2432232314}')
    assert not claim.fits(key, b'{"test":2432232314}')


async def test_a_signed_post_is_accepted_and_its_webhook_id_is_its_source_ref(door: SigningDoor) -> None:
    answer = await door.post(signed(name="msg_7"))

    assert answer.status_code == 202
    assert await door.door.sql("SELECT source_ref FROM ingress_receipts") == "webhook:msg_7"
    assert await door.door.sql("SELECT workspace_id FROM messages") == DEMO_WORKSPACE


async def test_the_source_ref_of_the_body_goes_before_the_webhook_id(door: SigningDoor) -> None:
    body = b'{"text": "a", "source_ref": "mine"}'

    await door.post(signed(body=body), body)

    assert await door.door.sql("SELECT source_ref FROM ingress_receipts") == "mine"


async def test_a_source_ref_of_the_same_letters_as_a_webhook_id_is_another_post(door: SigningDoor) -> None:
    await door.post(signed(name="42"))

    answer = await door.door.post({"text": "another", "source_ref": "42"})

    assert answer.status_code == 202
    assert (await door.door.rows())["messages"] == 2


@pytest.mark.parametrize("name", ["42", "x" * 248])
async def test_a_sender_without_a_signature_can_name_a_signed_post(door: SigningDoor, name: str) -> None:
    """Whoever has the secret of an endpoint may repeat what came in there; no id is too long for that."""
    await door.post(signed(name=name))

    answer = await door.door.post({"text": "signed", "source_ref": f"webhook:{name}"})

    assert (answer.status_code, answer.json()["of"]) == (200, "source_ref")


@pytest.mark.parametrize("late", [0, 280, -280])
async def test_a_replay_within_five_minutes_is_a_duplicate(door: SigningDoor, late: int) -> None:
    headers = signed(late=late)

    first, again = await door.post(headers), await door.post(headers)

    assert (first.status_code, again.status_code, again.json()["of"]) == (202, 200, "source_ref")
    assert (await door.door.rows())["messages"] == 1


async def test_of_fifty_parallel_copies_exactly_one_is_taken(door: SigningDoor) -> None:
    headers = signed()

    answers = await asyncio.gather(*(door.post(headers) for _ in range(50)))

    assert sorted(answer.status_code for answer in answers) == [200] * 49 + [202]
    assert (await door.door.rows())["ingress_receipts"] == 1


@pytest.mark.parametrize(("when", "fits"), [(699, False), (700, True), (701, True), (1300, True), (1301, False)])
def test_a_timestamp_may_be_five_minutes_off_either_way(when: int, fits: bool) -> None:
    signatures = Signatures(cast(Gateway, None), KEYS, now=lambda: 1000.0)
    headers = signed() | {"webhook-timestamp": str(when)}

    if fits:
        assert signatures.claim(headers).timestamp == str(when)
    else:
        with pytest.raises(Unsigned):
            signatures.claim(headers)


@pytest.mark.parametrize("late", [301, -310, 10**10])
async def test_a_timestamp_more_than_five_minutes_off_is_401(door: SigningDoor, late: int) -> None:
    headers = signed(late=0) | {"webhook-timestamp": str(abs(int(time.time()) - late))}
    headers["webhook-signature"] = sign(FIRST, "msg_1", int(headers["webhook-timestamp"]), BODY)

    answer = await door.post(headers)

    assert answer.status_code == 401
    assert "five minutes" in answer.json()["detail"]
    assert await door.door.rows() == dict.fromkeys(TABLES, 0)


REFUSALS = {
    "another secret": (lambda: signed(SECOND), BODY, ENDPOINT),
    "another id": (lambda: signed() | {"webhook-id": "msg_2"}, BODY, ENDPOINT),
    "another moment": (lambda: signed() | {"webhook-timestamp": str(int(time.time()) + 100)}, BODY, ENDPOINT),
    "a changed body": (lambda: signed(), b'{"text":"signed"}', ENDPOINT),
    "no signature": (lambda: signed() | {"webhook-signature": ""}, BODY, ENDPOINT),
    "no version": (lambda: signed() | {"webhook-signature": signed()["webhook-signature"][3:]}, BODY, ENDPOINT),
    "version 2": (lambda: signed() | {"webhook-signature": "v2" + signed()["webhook-signature"][2:]}, BODY, ENDPOINT),
    "not base64": (lambda: signed() | {"webhook-signature": "v1,***"}, BODY, ENDPOINT),
    "half": (lambda: signed() | {"webhook-signature": "v1,AAAA"}, BODY, ENDPOINT),
    "an unknown endpoint": (lambda: signed(), BODY, str(uuid4())),
    "no endpoint at all": (lambda: signed(), BODY, "nothing"),
    "an endpoint of the bot": (lambda: signed(), BODY, "0de00000-0000-4000-8000-0000000000e2"),
}
"""Signed when the test runs, which may be long after it was collected."""


@pytest.mark.parametrize(("made", "body", "endpoint"), REFUSALS.values(), ids=REFUSALS)
async def test_whatever_does_not_fit_is_refused_in_the_same_words(
    door: SigningDoor, made: Callable[[], dict[str, str]], body: bytes, endpoint: str
) -> None:
    answer = await door.post(made(), body, endpoint)

    told = answer.json()
    told.pop("trace_id", None)
    assert answer.status_code == 401
    assert told == {
        "type": "about:blank",
        "title": "Unauthorized",
        "status": 401,
        "detail": "no enabled endpoint of this id has a secret that gives this signature",
    }
    assert await door.door.rows() == dict.fromkeys(TABLES, 0)
    assert await door.door.sql("SELECT count(*) FROM ingest_runs") == 0


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("webhook-id", None),
        ("webhook-id", ""),
        ("webhook-id", "two words"),
        ("webhook-id", "x" * 249),
        ("webhook-timestamp", None),
        ("webhook-timestamp", ""),
        ("webhook-timestamp", "now"),
        ("webhook-timestamp", "-1"),
        ("webhook-timestamp", "1e9"),
        ("webhook-timestamp", "9" * 400),
    ],
)
async def test_headers_that_are_missing_or_make_no_sense_are_401(
    door: SigningDoor, name: str, value: str | None
) -> None:
    headers = {key: text for key, text in signed().items() if key != name}

    answer = await door.post(headers | ({} if value is None else {name: value}))

    assert (answer.status_code, answer.json()["detail"][:20]) == (401, "expected the headers")


async def test_one_fitting_signature_of_several_is_enough(door: SigningDoor) -> None:
    headers = signed()
    headers["webhook-signature"] = f"v1a,AAAA {signed(SECOND)['webhook-signature']} {headers['webhook-signature']}"

    assert (await door.post(headers)).status_code == 202


async def test_the_bearer_of_an_endpoint_does_not_open_its_signed_address(door: SigningDoor) -> None:
    answer = await door.post({"Authorization": "Bearer demo-push-secret-for-development"})

    assert answer.status_code == 401


async def test_a_secret_bound_in_another_workspace_signs_nothing(door: SigningDoor) -> None:
    await door.bind(SECOND, workspace=SHOP_WORKSPACE)

    assert (await door.post(signed(SECOND))).status_code == 401


async def test_both_secrets_fit_during_a_rotation_and_the_old_one_not_after_it(door: SigningDoor) -> None:
    """The new secret is bound as next, senders change over, then it is bound as the endpoint's own."""
    numbers = iter(range(10**6))

    async def status(secret: str) -> int:
        return (await door.post(signed(secret, name=f"msg_{next(numbers)}"))).status_code

    await door.bind(SECOND, f"{ENDPOINT}:next")

    async def next_fits() -> bool:
        return await status(SECOND) == 202

    await eventually(next_fits)
    assert await status(FIRST) == 202

    await door.bind(SECOND)

    async def first_is_over() -> bool:
        assert await status(SECOND) == 202
        return await status(FIRST) == 401

    await eventually(first_is_over)


async def test_the_command_that_binds_tokens_binds_signing_secrets_too(
    door: SigningDoor, seeded_database: Database
) -> None:
    words = ("auth", "bind", "--sealed", "--platform", "webhook", "--auth-ref", ENDPOINT)
    told = ("--workspace", str(DEMO_WORKSPACE), "--operator", "ann", "--reason", "rotation")
    env = {"PATH": os.defpath, "AUTOPOST_DATABASE_URL": seeded_database.url, "AUTOPOST_SECRETS_KEY": KEY}

    process = await create_subprocess_exec(sys.executable, "-m", "autopost_cli", *words, *told, env=env, stdin=PIPE)
    await process.communicate(f"{SECOND}\n".encode())

    assert process.returncode == 0
    assert (await door.post(signed(SECOND))).status_code == 202


async def test_a_disabled_endpoint_takes_no_signature(door: SigningDoor) -> None:
    await door.door.sql("UPDATE workspace_endpoints SET enabled = false WHERE endpoint_id = $1", UUID(ENDPOINT))

    assert (await door.post(signed())).status_code == 401


async def test_an_endpoint_disabled_a_moment_ago_takes_no_signature(door: SigningDoor) -> None:
    first = await door.post(signed())
    await door.door.sql("UPDATE workspace_endpoints SET enabled = false WHERE endpoint_id = $1", UUID(ENDPOINT))
    before = await door.door.rows()

    assert (first.status_code, (await door.post(signed())).status_code) == (202, 401)
    assert await door.door.rows() == before


@pytest.mark.parametrize("secret", ["whsec_c2hvcnQ=", "whsec_***", base64.b64encode(b"x" * 32).decode()])
async def test_a_secret_that_is_none_signs_nothing(door: SigningDoor, secret: str) -> None:
    await door.bind(secret)

    assert (await door.post(signed())).status_code == 401


@pytest.mark.parametrize("limit", [1000, 262_144, 1024 * 1024])
@pytest.mark.parametrize(("size", "status"), [(2000, 401), (300_000, 401), (5 * 1024 * 1024, 413)])
async def test_an_unknown_endpoint_cannot_be_told_from_a_known_one_by_what_it_reads(
    door: SigningDoor, limit: int, size: int, status: int
) -> None:
    await door.door.sql("UPDATE workspace_endpoints SET max_payload_bytes = $1", limit)

    known, unknown = [await door.post(signed(), b" " * size, endpoint) for endpoint in (ENDPOINT, str(uuid4()))]

    assert (known.status_code, known.json()) == (unknown.status_code, unknown.json())
    assert known.status_code == status
    assert await door.door.sql("SELECT count(*) FROM events WHERE action = 'ingress_payload_rejected'") == 0


async def test_a_signed_body_over_the_limit_is_413_and_leaves_its_event(door: SigningDoor) -> None:
    body = BODY.ljust(300_000)

    answer = await door.post(signed(body=body), body)

    assert answer.status_code == 413
    assert await door.door.sql("SELECT error ->> 'code' FROM events WHERE action = 'ingress_payload_rejected'") == (
        "content_too_large"
    )
    assert await door.door.rows() == dict.fromkeys(TABLES, 0)


async def test_a_signed_body_within_a_large_limit_is_taken(door: SigningDoor) -> None:
    await door.door.sql("UPDATE workspace_endpoints SET max_payload_bytes = 1048576")
    body = BODY.ljust(1024 * 1024)

    assert (await door.post(signed(body=body), body)).status_code == 202


async def test_a_signed_body_that_cannot_be_read_leaves_its_event(door: SigningDoor) -> None:
    answer = await door.post(signed(body=b"{"), b"{")

    assert answer.status_code == 400
    assert await door.door.sql("SELECT count(*) FROM events WHERE action = 'ingress_payload_rejected'") == 1


async def test_a_signed_post_may_ask_for_a_dry_run(door: SigningDoor) -> None:
    answer = await door.post(signed(), query="?dry_run=1")

    assert answer.status_code == 200
    assert await door.door.rows() == dict.fromkeys(TABLES, 0)
