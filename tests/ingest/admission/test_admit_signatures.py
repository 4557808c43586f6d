"""Signed posts (Standard Webhooks): which signatures fit, for how long, how often, and with which secret."""

import asyncio
import base64
import hmac
import os
import random
import sys
import time
from asyncio.subprocess import PIPE, create_subprocess_exec
from collections.abc import AsyncIterator, Callable
from typing import cast
from uuid import UUID, uuid4

import httpx
import pytest
from autopost_contracts.ids import EndpointId, WorkspaceId
from autopost_ingest.admission.signatures import InvalidSignatureHeaders, SignatureHeaders, Signatures
from autopost_ingest.gateway import Endpoint, Gateway, Signer
from autopost_runtime.config.load import Secret
from autopost_runtime.secrets.sealing import Label, SealingKeys
from harness.databases import Database
from harness.eventually import eventually
from ingest.support.ingest_client import DEMO_WORKSPACE, SHOP_WORKSPACE, TABLES
from ingest.support.ingest_server import RawIngestClient, opened

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


class SigningClient:
    def __init__(self, client: RawIngestClient) -> None:
        self.client = client

    async def bind(self, secret: str, name: str = ENDPOINT, workspace: UUID = DEMO_WORKSPACE) -> None:
        sealed = KEYS.seal(Secret(secret), Label(str(workspace), "webhook", name))
        await self.client.sql(
            "SELECT bind_credential($1, 'webhook', $2, 'sealed', $3, NULL, 'test', 'test')", workspace, name, sealed
        )

    async def post(
        self, headers: dict[str, str], body: bytes = BODY, endpoint: str = ENDPOINT, query: str = ""
    ) -> httpx.Response:
        return await self.client.http.post(
            f"{self.client.url}/v1/posts/{endpoint}{query}", headers=headers, content=body
        )


@pytest.fixture
async def client(seeded_database: Database) -> AsyncIterator[SigningClient]:
    async with opened(seeded_database, settings={"keys": KEYS}) as client:
        signing = SigningClient(client)
        await signing.bind(FIRST)
        yield signing


def test_the_example_of_the_standard_fits() -> None:
    key = base64.b64decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    signature = base64.b64decode("g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=")
    signature = SignatureHeaders(id="msg_p5jXN8AQM9LWM0D4loKWxJek", timestamp="1614265330", signatures=(signature,))

    assert signature.matches(key, b'{"test": 2432232314}')
    assert not signature.matches(key, b'{"test":2432232314}')


async def test_a_signed_post_is_accepted_and_its_webhook_id_is_its_source_ref(client: SigningClient) -> None:
    answer = await client.post(signed(name="msg_7"))

    assert answer.status_code == 202
    assert await client.client.sql("SELECT source_ref FROM ingress_receipts") == "webhook:msg_7"
    assert await client.client.sql("SELECT workspace_id FROM messages") == DEMO_WORKSPACE


async def test_the_source_ref_of_the_body_goes_before_the_webhook_id(client: SigningClient) -> None:
    body = b'{"text": "a", "source_ref": "mine"}'

    await client.post(signed(body=body), body)

    assert await client.client.sql("SELECT source_ref FROM ingress_receipts") == "mine"


async def test_a_source_ref_of_the_same_letters_as_a_webhook_id_is_another_post(client: SigningClient) -> None:
    await client.post(signed(name="42"))

    answer = await client.client.post({"text": "another", "source_ref": "42"})

    assert answer.status_code == 202
    assert (await client.client.rows())["messages"] == 2


@pytest.mark.parametrize("name", ["42", "x" * 248])
async def test_a_sender_without_a_signature_can_name_a_signed_post(client: SigningClient, name: str) -> None:
    """Whoever has the secret of an endpoint may repeat what came in there; no id is too long for that."""
    await client.post(signed(name=name))

    answer = await client.client.post({"text": "signed", "source_ref": f"webhook:{name}"})

    assert (answer.status_code, answer.json()["of"]) == (200, "source_ref")


@pytest.mark.parametrize("late", [0, 280, -280])
async def test_a_replay_within_five_minutes_is_a_duplicate(client: SigningClient, late: int) -> None:
    headers = signed(late=late)

    first, again = await client.post(headers), await client.post(headers)

    assert (first.status_code, again.status_code, again.json()["of"]) == (202, 200, "source_ref")
    assert (await client.client.rows())["messages"] == 1


async def test_of_fifty_parallel_copies_exactly_one_is_taken(client: SigningClient) -> None:
    headers = signed()

    answers = await asyncio.gather(*(client.post(headers) for _ in range(50)))

    assert sorted(answer.status_code for answer in answers) == [200] * 49 + [202]
    assert (await client.client.rows())["ingress_receipts"] == 1


@pytest.mark.parametrize(("when", "fits"), [(699, False), (700, True), (701, True), (1300, True), (1301, False)])
def test_a_timestamp_may_be_five_minutes_off_either_way(when: int, fits: bool) -> None:
    signatures = Signatures(cast(Gateway, None), KEYS, now=lambda: 1000.0)
    headers = signed() | {"webhook-timestamp": str(when)}

    if fits:
        assert signatures.read_headers(headers).timestamp == str(when)
    else:
        with pytest.raises(InvalidSignatureHeaders):
            signatures.read_headers(headers)


@pytest.mark.parametrize("late", [301, -310, 10**10])
async def test_a_timestamp_more_than_five_minutes_off_is_401(client: SigningClient, late: int) -> None:
    headers = signed(late=0) | {"webhook-timestamp": str(abs(int(time.time()) - late))}
    headers["webhook-signature"] = sign(FIRST, "msg_1", int(headers["webhook-timestamp"]), BODY)

    answer = await client.post(headers)

    assert answer.status_code == 401
    assert "5 minutes" in answer.json()["detail"]
    assert await client.client.rows() == dict.fromkeys(TABLES, 0)


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
    client: SigningClient, made: Callable[[], dict[str, str]], body: bytes, endpoint: str
) -> None:
    answer = await client.post(made(), body, endpoint)

    told = answer.json()
    told.pop("trace_id", None)
    assert answer.status_code == 401
    assert told == {
        "type": "about:blank",
        "title": "Unauthorized",
        "status": 401,
        "detail": "signature does not match any secret of an enabled endpoint with this id",
    }
    assert await client.client.rows() == dict.fromkeys(TABLES, 0)
    assert await client.client.sql("SELECT count(*) FROM ingest_runs") == 0


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
    client: SigningClient, name: str, value: str | None
) -> None:
    headers = {key: text for key, text in signed().items() if key != name}

    answer = await client.post(headers | ({} if value is None else {name: value}))

    assert (answer.status_code, answer.json()["detail"][:20]) == (401, "headers webhook-id, ")


async def test_one_fitting_signature_of_several_is_enough(client: SigningClient) -> None:
    headers = signed()
    headers["webhook-signature"] = f"v1a,AAAA {signed(SECOND)['webhook-signature']} {headers['webhook-signature']}"

    assert (await client.post(headers)).status_code == 202


async def test_the_bearer_of_an_endpoint_does_not_open_its_signed_address(client: SigningClient) -> None:
    answer = await client.post({"Authorization": "Bearer demo-push-secret-for-development"})

    assert answer.status_code == 401


async def test_a_secret_bound_in_another_workspace_signs_nothing(client: SigningClient) -> None:
    await client.bind(SECOND, workspace=SHOP_WORKSPACE)

    assert (await client.post(signed(SECOND))).status_code == 401


async def test_both_secrets_fit_during_a_rotation_and_the_old_one_not_after_it(client: SigningClient) -> None:
    """The new secret is bound as next, senders change over, then it is bound as the endpoint's own."""
    numbers = iter(range(10**6))

    async def status(secret: str) -> int:
        return (await client.post(signed(secret, name=f"msg_{next(numbers)}"))).status_code

    await client.bind(SECOND, f"{ENDPOINT}:next")

    async def next_fits() -> bool:
        return await status(SECOND) == 202

    await eventually(next_fits)
    assert await status(FIRST) == 202

    await client.bind(SECOND)

    async def first_is_over() -> bool:
        assert await status(SECOND) == 202
        return await status(FIRST) == 401

    await eventually(first_is_over)


async def test_the_command_that_binds_tokens_binds_signing_secrets_too(
    client: SigningClient, seeded_database: Database
) -> None:
    words = ("auth", "bind", "--sealed", "--platform", "webhook", "--auth-ref", ENDPOINT)
    told = ("--workspace", str(DEMO_WORKSPACE), "--operator", "ann", "--reason", "rotation")
    env = {"PATH": os.defpath, "AUTOPOST_DATABASE_URL": seeded_database.url, "AUTOPOST_SECRETS_KEY": KEY}

    process = await create_subprocess_exec(sys.executable, "-m", "autopost_cli", *words, *told, env=env, stdin=PIPE)
    await process.communicate(f"{SECOND}\n".encode())

    assert process.returncode == 0
    assert (await client.post(signed(SECOND))).status_code == 202


async def test_a_disabled_endpoint_takes_no_signature(client: SigningClient) -> None:
    await client.client.sql("UPDATE workspace_endpoints SET enabled = false WHERE endpoint_id = $1", UUID(ENDPOINT))

    assert (await client.post(signed())).status_code == 401


async def test_an_endpoint_disabled_a_moment_ago_takes_no_signature(client: SigningClient) -> None:
    first = await client.post(signed())
    await client.client.sql("UPDATE workspace_endpoints SET enabled = false WHERE endpoint_id = $1", UUID(ENDPOINT))
    before = await client.client.rows()

    assert (first.status_code, (await client.post(signed())).status_code) == (202, 401)
    assert await client.client.rows() == before


@pytest.mark.parametrize("secret", ["whsec_c2hvcnQ=", "whsec_***", base64.b64encode(b"x" * 32).decode()])
async def test_a_secret_that_is_none_signs_nothing(client: SigningClient, secret: str) -> None:
    await client.bind(secret)

    assert (await client.post(signed())).status_code == 401


@pytest.mark.parametrize("limit", [1000, 262_144, 1024 * 1024])
@pytest.mark.parametrize(("size", "status"), [(2000, 401), (300_000, 401), (5 * 1024 * 1024, 413)])
async def test_an_unknown_endpoint_cannot_be_told_from_a_known_one_by_what_it_reads(
    client: SigningClient, limit: int, size: int, status: int
) -> None:
    await client.client.sql("UPDATE workspace_endpoints SET max_payload_bytes = $1", limit)

    known, unknown = [await client.post(signed(), b" " * size, endpoint) for endpoint in (ENDPOINT, str(uuid4()))]

    assert (known.status_code, known.json()) == (unknown.status_code, unknown.json())
    assert known.status_code == status
    assert await client.client.sql("SELECT count(*) FROM events WHERE action = 'ingress_payload_rejected'") == 0


async def test_a_signed_body_over_the_limit_is_413_and_leaves_its_event(client: SigningClient) -> None:
    body = BODY.ljust(300_000)

    answer = await client.post(signed(body=body), body)

    assert answer.status_code == 413
    assert await client.client.sql("SELECT error ->> 'code' FROM events WHERE action = 'ingress_payload_rejected'") == (
        "content_too_large"
    )
    assert await client.client.rows() == dict.fromkeys(TABLES, 0)


async def test_a_signed_body_within_a_large_limit_is_taken(client: SigningClient) -> None:
    await client.client.sql("UPDATE workspace_endpoints SET max_payload_bytes = 1048576")
    body = BODY.ljust(1024 * 1024)

    assert (await client.post(signed(body=body), body)).status_code == 202


async def test_a_signed_body_that_cannot_be_read_leaves_its_event(client: SigningClient) -> None:
    answer = await client.post(signed(body=b"{"), b"{")

    assert answer.status_code == 400
    assert await client.client.sql("SELECT count(*) FROM events WHERE action = 'ingress_payload_rejected'") == 1


async def test_a_signed_post_may_ask_for_a_dry_run_when_its_id_says_so(client: SigningClient) -> None:
    answer = await client.post(signed(name="msg_1?dry_run=1"), query="?dry_run=1")

    assert answer.status_code == 200
    assert await client.client.rows() == dict.fromkeys(TABLES, 0)


async def test_a_dry_run_and_its_post_are_of_the_same_id(client: SigningClient) -> None:
    posted = await client.post(signed(name="msg_1"))

    dry = await client.post(signed(name="msg_1?dry_run=1"), query="?dry_run=1")

    assert (posted.status_code, dry.json()["verdict"]) == (202, "duplicate")


REPLAYS = {
    "a post as a dry run": ("msg_1", "?dry_run=1"),
    "a dry run as a post": ("msg_1?dry_run=1", ""),
    "a dry run with its media as one without": ("msg_1?dry_run=1", "?dry_run=1&media=skip"),
    "with a parameter that nobody knows": ("msg_1", "?shout=1"),
    "with a parameter behind a hint": ("msg_1", "?workspace_id=1&dry_run=1"),
    "with no id but a query": ("?dry_run=1", "?dry_run=1"),
}


@pytest.mark.parametrize(("name", "query"), REPLAYS.values(), ids=REPLAYS)
async def test_what_was_signed_cannot_be_repeated_with_another_query(
    client: SigningClient, name: str, query: str
) -> None:
    answer = await client.post(signed(name=name), query=query)

    assert (answer.status_code, answer.json()["detail"][:23]) == (401, "the signature must cove")
    assert await client.client.rows() == dict.fromkeys(TABLES, 0)


async def test_a_workspace_in_the_query_changes_nothing_and_needs_no_signature(client: SigningClient) -> None:
    assert (await client.post(signed(), query=f"?workspace_id={SHOP_WORKSPACE}")).status_code == 202
    assert await client.client.sql("SELECT workspace_id FROM messages") == DEMO_WORKSPACE


class CountingKeys(SealingKeys):
    opened = 0

    def open(self, sealed: bytes, label: Label) -> Secret:
        self.opened += 1
        return super().open(sealed, label)


class CountingClaim(SignatureHeaders):
    compared: list[bytes]

    def matches(self, key: bytes, body: bytes) -> bool:
        self.compared.append(key)
        return super().matches(key, body)


class Bindings:
    """Stands in for the database: the secrets of one endpoint."""

    def __init__(self, *secrets: str) -> None:
        self.asked: list[UUID] = []
        names = (ENDPOINT, f"{ENDPOINT}:next")
        endpoint = Endpoint(
            workspace_id=WorkspaceId(DEMO_WORKSPACE),
            endpoint_id=EndpointId(UUID(ENDPOINT)),
            workspace_status="active",
            max_payload_bytes=1000,
        )
        self._signers = tuple(
            Signer(
                endpoint=endpoint,
                auth_ref=name,
                sealed=KEYS.seal(Secret(secret), Label(str(DEMO_WORKSPACE), "webhook", name)),
            )
            for name, secret in zip(names, secrets, strict=False)
        )

    async def read_signing_secrets(self, endpoint: UUID) -> tuple[Signer, ...]:
        self.asked.append(endpoint)
        return self._signers if str(endpoint) == ENDPOINT else ()


@pytest.mark.parametrize("secrets", [(FIRST,), (FIRST, SECOND)], ids=["one secret", "two secrets"])
async def test_as_much_is_done_for_an_unknown_endpoint_as_for_a_known_one(secrets: tuple[str, ...]) -> None:
    """Twice each: what is remembered of the one is remembered of the other."""
    work = {}

    for name in (ENDPOINT, str(uuid4())):
        gateway, keys = Bindings(*secrets), CountingKeys(b"k" * 32)
        signatures, compared = Signatures(cast(Gateway, gateway), keys), []
        for _ in range(2):
            signature = signatures.read_headers(signed())
            counting = CountingClaim(
                id=signature.id, timestamp=signature.timestamp, signatures=signature.signatures, compared=compared
            )
            signatures.signer(counting, BODY, await signatures.keys_of(name))
        work[name] = (len(gateway.asked), keys.opened, len(compared))

    assert list(work.values()) == [(1, 2, 4)] * 2


PAIRS = 300


async def test_an_unknown_endpoint_cannot_be_told_from_a_known_one_by_its_time(client: SigningClient) -> None:
    """Asked in turn, in an order by chance: other work on the machine meets both, so each is slower about as often.

    Of 300 pairs by chance alone 105 to 195, five deviations to either side.
    """
    unknown, slower = str(uuid4()), 0

    for _ in range(PAIRS):
        took = {}
        for name in random.sample((ENDPOINT, unknown), 2):
            headers = signed(SECOND)
            begun = time.perf_counter()
            assert (await client.post(headers, endpoint=name)).status_code == 401
            took[name] = time.perf_counter() - begun
        slower += took[ENDPOINT] > took[unknown]

    assert PAIRS * 0.35 < slower < PAIRS * 0.65
