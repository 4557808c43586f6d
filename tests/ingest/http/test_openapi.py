"""The document that ingest serves says what ingest does: every path, every status, every word of an answer."""

import ast
import copy
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import autopost_ingest
import autopost_runtime
import httpx
import msgspec
import pytest
from autopost_contracts.payload import PostRequest
from autopost_ingest.http.openapi import document
from autopost_ingest.http.openapi_examples import POSTS, UPDATES
from harness.buckets import Bucket
from harness.databases import Database
from harness.eventually import eventually
from ingest.support.ingest_client import DEMO, DEMO_WORKSPACE, IngestClient
from ingest.support.ingest_server import opened
from ingest.support.pictures import PNG, Pictures
from ingest.support.staging_ingest import Workshop, workshop
from jsonschema import Draft202012Validator
from openapi_spec_validator import validate

BOT = "demo-bot-secret-for-development"
VERBS = ("post", "get", "put", "delete", "patch")
UNREACHABLE = 500
"""Nobody knows how to make it happen; it is written all the same."""


@pytest.fixture
async def client(seeded_database: Database) -> Any:
    async with opened(seeded_database) as made:
        yield made


async def served(client: IngestClient) -> dict[str, Any]:
    answer = await client.http.get(f"{client.url}/openapi.json")
    assert (answer.status_code, answer.headers["content-type"].split(";")[0]) == (200, "application/json")
    found: dict[str, Any] = answer.json()
    return found


def documented(path: str, verb: str = "post") -> dict[str, Any]:
    found: dict[str, Any] = document()["paths"][path][verb]["responses"]
    return found


def shape(response: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The media type and the whole schema of a documented answer."""
    components = document()["components"]
    if "$ref" in response:
        response = components["responses"][response["$ref"].rpartition("/")[2]]
    [(media_type, content)] = response["content"].items()
    return media_type, {**content["schema"], "components": components}


def agree(answer: httpx.Response, path: str, verb: str = "post") -> None:
    """The answer is one that the document knows, and it has nothing in it that the document does not know."""
    media_type, schema = shape(documented(path, verb)[str(answer.status_code)])
    assert answer.headers["content-type"].split(";")[0] == media_type
    Draft202012Validator(closed(schema)).validate(answer.json())


def closed(schema: dict[str, Any]) -> dict[str, Any]:
    """Objects with named properties have no others: what is answered without being named would not be noticed."""
    made = copy.deepcopy(schema)
    for one in made["components"]["schemas"].values():
        if one.get("properties"):
            one["additionalProperties"] = False
    return made


def nameless(path: str) -> str:
    return "/".join("{}" if piece.startswith("{") else piece for piece in path.split("/"))


async def test_it_is_valid_and_needs_no_secret(client: IngestClient) -> None:
    validate(await served(client))


async def test_what_is_served_is_what_is_made_of_the_structs(client: IngestClient) -> None:
    assert await served(client) == msgspec.json.decode(msgspec.json.encode(document()))


async def test_it_knows_every_path_of_the_service_and_no_other() -> None:
    """Read from the source: the service is put together in several places."""
    routes = set()
    for call in calls(autopost_ingest, "add_post", "add_get", "add_put", "add_delete", "add_patch"):
        path = call.args[0].value if isinstance(call.args[0], ast.Constant) else "/v1/bot/max"
        routes.add((nameless(str(path)), call.func.attr.removeprefix("add_")))  # type: ignore[attr-defined]

    paths = document()["paths"]
    verbs = {(nameless(path), verb) for path in paths for verb in paths[path] if verb != "parameters"}
    assert verbs == routes


async def test_every_status_that_a_refusal_can_have_is_in_it() -> None:
    thrown = {
        call.args[0].value
        for package in (autopost_ingest, autopost_runtime)
        for call in calls(package, "HttpProblem")
        if call.args and isinstance(call.args[0], ast.Constant) and isinstance(call.args[0].value, int)
    }

    calls_of = [path[verb] for path in document()["paths"].values() for verb in VERBS if verb in path]
    written = {int(status) for call in calls_of for status in call["responses"]}
    assert thrown >= {400, 401, 413}
    assert thrown - {405} <= written  # a method that a path does not know is no operation of it


def calls(package: Any, *names: str) -> Iterator[ast.Call]:
    for file in Path(package.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", None)) in names:
                yield node


@pytest.mark.parametrize("name", POSTS)
async def test_each_example_is_a_post_that_is_taken(client: IngestClient, name: str) -> None:
    body = POSTS[name]
    for item in body.get("media", ()):
        if ref := item.get("blob_ref"):
            await client.sql(
                "SELECT remember_media_origin($1, $2, 's3://media/x', $3, 'image/png', 10)",
                *(DEMO_WORKSPACE, ref, ref.removeprefix("sha256:")),
            )

    url, headers = f"{client.url}/v1/posts", {"Authorization": f"Bearer {DEMO}"}
    dry = await client.http.post(f"{url}?dry_run=1&media=skip", headers=headers, json=body)
    posted = await client.http.post(url, headers=headers, json=body)

    agree(dry, "/v1/posts")
    assert (dry.status_code, dry.json()["verdict"]) == (200, "accepted")
    assert dry.json()["counts"]["validation_failed"] == 0
    agree(posted, "/v1/posts")
    fetched = any("url" in item for item in body.get("media", ()))
    assert posted.status_code == (422 if fetched else 202)  # this client has nobody to fetch


async def test_the_examples_use_every_field_that_a_sender_may_use() -> None:
    used = {field for body in POSTS.values() for field in body}

    assert set(PostRequest.__struct_fields__) - used == {"protect", "workspace_id"}


@pytest.mark.parametrize("name", UPDATES)
async def test_each_example_of_an_update_is_kept(client: IngestClient, name: str) -> None:
    headers = {"X-Max-Bot-Api-Secret": BOT}

    answers = [
        await client.http.post(f"{client.url}/v1/bot/max", headers=headers, json=UPDATES[name]) for _ in range(2)
    ]

    assert [answer.json()["status"] for answer in answers] == ["stored", "duplicate"]
    for answer in answers:
        agree(answer, "/v1/bot/max")


async def test_every_documented_status_of_a_post_happens_as_it_is_written(seeded_database: Database) -> None:
    seen = set()

    async with opened(seeded_database) as client:
        for answer in [answer async for answer in every_answer(client)]:
            agree(answer, "/v1/posts")
            seen.add(answer.status_code)

    assert seen == {int(status) for status in documented("/v1/posts")} - {UNREACHABLE, 408}


async def every_answer(client: IngestClient) -> Any:
    yield await client.post({"text": "a", "source_ref": "1"})
    yield await client.post({"text": "a", "source_ref": "1"})
    yield await client.post(content=b"{")
    yield await client.post({"text": "a"}, secret="wrong")
    yield await client.post(content=b" " * 300_000)
    yield await client.post(content=b"x", headers={"Content-Encoding": "gzip"})
    yield await client.post({})
    await client.sql("UPDATE workspace_endpoints SET ingress_rps = 0.01")
    for answer in [await client.post({"text": f"{n}"}) for n in range(3)]:
        yield answer
    await client.sql("UPDATE workspaces SET status = 'paused'")
    yield await client.post()
    await client.sql("UPDATE workspaces SET status = 'disabled'")
    yield await client.post()


async def test_every_documented_status_of_a_state_happens_as_it_is_written(
    seeded_database: Database, s3: Bucket, site: Pictures
) -> None:
    seen, states = set(), set()

    async with workshop(seeded_database, s3) as shop:
        for answer in [answer async for answer in every_state(shop, site)]:
            agree(answer, "/v1/posts/{id}", "get")
            seen.add(answer.status_code)
            states.add(answer.json()["status"] if answer.status_code == 200 else None)

    assert seen == {int(status) for status in documented("/v1/posts/{id}", "get")} - {UNREACHABLE}
    assert states == {"staged", "enqueued", "failed", None}


async def every_state(shop: Workshop, site: Pictures) -> Any:
    """Of posts whose answers are as documented too."""
    urls = {"enqueued": site.put("/cat.png", PNG), "failed": f"{site.url}/gone", "staged": site.put("/503", b"", 503)}
    posts = {state: await shop.post({"media": [{"type": "photo", "url": url}]}) for state, url in urls.items()}
    for posted in posts.values():
        agree(posted, "/v1/posts")
        assert (posted.status_code, posted.json()["status"]) == (202, "staged")

    async def tried() -> bool:
        return bool(await shop.sql("SELECT bool_and(status = 'enqueued' OR last_error IS NOT NULL) FROM staged_posts"))

    await eventually(tried)
    for state, posted in posts.items():
        told = await shop.told(posted.json()["post_id"])
        assert (told.status_code, told.json()["status"]) == (200, state)
        yield told
    yield await shop.told(str(uuid4()))
    yield await shop.told("x", secret="wrong")
    for change, status in CHANGES.items():
        await shop.sql(change)
        yield await eventually(partial(told_with, shop, status))


CHANGES = {
    "UPDATE workspace_endpoints SET ingress_rps = 0.01": 429,
    "UPDATE workspaces SET status = 'paused'": 503,
    "UPDATE workspaces SET status = 'disabled'": 403,
}


async def told_with(shop: Workshop, status: int) -> httpx.Response | None:
    """An endpoint is remembered for a second."""
    answer = await shop.told("x")
    return answer if answer.status_code == status else None
