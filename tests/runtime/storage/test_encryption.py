"""Objects are encrypted by the store where it can; where it cannot, that is noticed once."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest
import structlog
from aiohttp import web
from autopost_runtime.config.load import Secret
from autopost_runtime.http.web import serve
from autopost_runtime.storage.encryption import NotEncrypted
from autopost_runtime.storage.objects import PART, Objects, open_objects

HEADER = "x-amz-server-side-encryption"
ERROR = "<Error><Code>{}</Code><Message>no</Message></Error>"
UPLOAD = "<InitiateMultipartUploadResult><UploadId>u1</UploadId></InitiateMultipartUploadResult>"


class Store:
    """Speaks as much S3 as a put needs. ``does`` with the header: encrypt, ignore, or a code to refuse it with."""

    def __init__(self, does: str) -> None:
        self.does = does
        self.asked: list[str | None] = []
        self.kept: set[str] = set()

    async def answer(self, request: web.Request) -> web.Response:
        if request.method == "PUT" and "partNumber" in request.query:
            await request.read()
            return web.Response(headers={"ETag": '"e"'})
        if request.method == "DELETE":
            self.kept.discard(request.path)
            return web.Response(status=204)
        if request.method == "POST" and "uploadId" in request.query:
            return web.Response(text="<CompleteMultipartUploadResult/>")
        await request.read()
        asked = request.headers.get(HEADER)
        self.asked.append(asked)
        if asked and self.does not in ("encrypt", "ignore"):
            return web.Response(status=501 if self.does == "NotImplemented" else 400, text=ERROR.format(self.does))
        self.kept.add(request.path)
        headers = {"ETag": '"e"'} | ({HEADER: asked} if asked and self.does == "encrypt" else {})
        return web.Response(headers=headers, text=UPLOAD if request.method == "POST" else "")


Opened = Callable[[Store, str], AbstractAsyncContextManager[Objects]]


@pytest.fixture
def opened(configure: Any) -> Opened:
    @asynccontextmanager
    async def open_one(store: Store, mode: str) -> AsyncIterator[Objects]:
        app = web.Application(client_max_size=PART * 2)
        app.router.add_route("*", "/{path:.*}", store.answer)
        async with await serve(app, "127.0.0.1", 0) as site:
            config = configure(
                s3_endpoint=site.url,
                s3_access_key=Secret("key"),
                s3_secret_key=Secret("secret"),
                s3_encryption=mode,
            )
            async with open_objects(config) as objects:
                yield objects

    return open_one


async def large() -> AsyncIterator[bytes]:
    yield bytes(PART + 1)


async def test_encryption_is_asked_for_by_default(configure: Any) -> None:
    assert configure().s3_encryption == "auto"


async def test_every_object_is_asked_to_be_encrypted_also_one_in_parts(opened: Opened) -> None:
    store = Store("encrypt")

    async with opened(store, "auto") as objects:
        await objects.put("small", b"x", "text/plain")
        await objects.put("large", large(), "text/plain")

    assert store.asked == ["AES256", "AES256"]


@pytest.mark.parametrize("does", ["ignore", "NotImplemented", "InvalidArgument"])
async def test_a_store_that_cannot_is_noticed_once_and_the_objects_are_kept(opened: Opened, does: str) -> None:
    store = Store(does)

    with structlog.testing.capture_logs() as logged:
        async with opened(store, "auto") as objects:
            for number in range(3):
                await objects.put(f"small{number}", b"x", "text/plain")
            await objects.put("large", large(), "text/plain")

    assert len(store.kept) == 4
    assert store.asked.count("AES256") == 1
    assert [line["event"] for line in logged] == ["objects.not_encrypted"]


async def test_a_large_object_may_be_the_first_that_is_refused(opened: Opened) -> None:
    store = Store("NotImplemented")

    async with opened(store, "auto") as objects:
        await objects.put("large", large(), "text/plain")

    assert store.asked == ["AES256", None]


@pytest.mark.parametrize("does", ["ignore", "NotImplemented"])
async def test_where_it_is_required_nothing_is_kept_unencrypted(opened: Opened, does: str) -> None:
    store = Store(does)

    async with opened(store, "required") as objects:
        for body in (b"x", large()):
            with pytest.raises(NotEncrypted):
                await objects.put("some", body, "text/plain")

    assert store.kept == set()


async def test_a_refusal_of_the_object_itself_is_no_word_about_encryption(opened: Opened) -> None:
    from botocore.exceptions import ClientError

    store = Store("AccessDenied")

    async with opened(store, "auto") as objects:
        with pytest.raises(ClientError):
            await objects.put("some", b"x", "text/plain")
        store.does = "encrypt"
        await objects.put("some", b"x", "text/plain")

    assert store.asked == ["AES256", "AES256"]


async def test_off_asks_for_nothing(opened: Opened) -> None:
    store = Store("encrypt")

    async with opened(store, "off") as objects:
        await objects.put("some", b"x", "text/plain")

    assert store.asked == [None]
