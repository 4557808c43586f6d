"""The tenant comes from the endpoint alone: who names a workspace all the same is neither believed nor refused."""

import json
from typing import Any, NamedTuple

import pytest
from ingest.support.ingest_client import DEMO_WORKSPACE, SHOP_WORKSPACE, IngestClient


class Literal(NamedTuple):
    """As it stands in the body."""

    text: str


BODIES: dict[str, tuple[Any, str | None]] = {
    "text": (str(SHOP_WORKSPACE), str(SHOP_WORKSPACE)),
    "empty text": ("", ""),
    "number": (42, "42"),
    "negative number": (-1.5, "-1.5"),
    "large number": (10**17, "1" + "0" * 17),
    "number of 19 digits": (1_234_567_890_123_456_789, "1234567890123456789"),
    "number beyond 64 bits": (-(10**30), "-1" + "0" * 30),
    "number of 5000 digits": (Literal("9" * 5000), "9" * 63 + "…"),
    "number beyond all types": (Literal("-1e400"), "-1e400"),
    "true": (True, "true"),
    "null": (None, None),
    "object": ({"id": 7}, '{"id":7}'),
    "list": ([1, "a"], '[1,"a"]'),
    "long": ("x" * 10_000, "x" * 63 + "…"),
    "long secret": ("https://ann:" + "hush" * 100 + "@example.com", "https://***@example.com"),
    "secret": ("Bearer canary-canary-canary", "Bearer ***"),
    "secret in an object": ({"token": "canary"}, '{"token":"***"}'),
}


@pytest.mark.parametrize(("named", "kept"), BODIES.values(), ids=BODIES)
async def test_whatever_the_body_calls_its_workspace_is_at_most_a_short_hint(
    client: IngestClient, named: Any, kept: str | None
) -> None:
    literal = named.text if isinstance(named, Literal) else json.dumps(named)
    body = f'{{"text": "hello", "workspace_id": {literal}}}'
    answer = await client.post(content=body, headers={"Content-Type": "application/json"})

    assert answer.status_code == 202, answer.text
    assert await client.sql("SELECT workspace_id FROM messages") == DEMO_WORKSPACE
    source = json.loads(await client.sql("SELECT source FROM messages"))
    assert source.get("workspace_hint") == kept


@pytest.mark.parametrize(
    "query", [f"?workspace_id={SHOP_WORKSPACE}", "?workspace_id=", "?workspace_id=1&workspace_id=x"]
)
async def test_a_workspace_in_the_query_is_passed_over(client: IngestClient, query: str) -> None:
    answer = await client.post({"text": "hello"}, query=query)
    dry = await client.post({"text": "another"}, query=f"{query}&dry_run=1")

    assert (answer.status_code, dry.status_code) == (202, 200)
    assert await client.sql("SELECT workspace_id FROM messages") == DEMO_WORKSPACE


@pytest.mark.parametrize("name", ["X-Workspace-Id", "workspace_id", "Workspace-Id"])
async def test_a_workspace_in_a_header_is_passed_over(client: IngestClient, name: str) -> None:
    answer = await client.post({"text": "hello"}, headers={name: str(SHOP_WORKSPACE)}, json={"text": "hello"})

    assert answer.status_code == 202
    assert await client.sql("SELECT workspace_id FROM messages") == DEMO_WORKSPACE


@pytest.mark.parametrize(
    ("query", "detail"),
    [
        ("?shout=1", "unknown parameter; known: dry_run, media"),
        ("?workspace=1", "unknown parameter; known: dry_run, media"),
        ("?workspace_id=1&shout=1", "unknown parameter; known: dry_run, media"),
        ("?dryrun=1", "unknown parameter; did you mean `dry_run`?"),
        ("?media=skip", "only valid with dry_run=1"),
    ],
)
async def test_any_other_parameter_is_refused_by_name(client: IngestClient, query: str, detail: str) -> None:
    answer = await client.post({"text": "hello"}, query=query)

    assert (answer.status_code, answer.json()["detail"]) == (400, detail)
