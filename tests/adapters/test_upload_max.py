"""MAX takes bytes on a host of their own: whom the token is told, where it comes from, and what may go wrong."""

from datetime import timedelta
from typing import Any

import pytest
from aiohttp import web
from autopost_adapters.base import Held
from autopost_contracts.outcomes import Failed
from autopost_contracts.plan import PlannedMedia

from adapters.max_parts import TARGET, TOKEN, Hosts, item, two_hosts
from adapters.media_sources import Bytes


async def test_the_token_goes_to_the_api_and_never_to_the_host_that_takes_the_bytes() -> None:
    async with two_hosts() as hosts:
        held = await hosts.adapter.upload(item("image"), Bytes(), TARGET)

    ((request, body),) = hosts.uploads
    assert held == Held(provider_id="of-photo", lifetime=timedelta(days=7))
    assert [asked.headers["Authorization"] for asked in hosts.api] == [TOKEN]
    assert "Authorization" not in request.headers
    assert TOKEN not in str(request.headers) + str(request.rel_url)
    assert TOKEN.encode() not in body


async def test_bytes_go_up_as_the_field_data_under_their_name_and_with_their_length() -> None:
    async with two_hosts() as hosts:
        await hosts.adapter.upload(item("image"), Bytes(content=b"0123456789"), TARGET)

    ((request, body),) = hosts.uploads
    assert (request.method, request.path_qs) == ("POST", "/put?sig=1")
    assert int(request.headers["Content-Length"]) == len(body)
    assert "Transfer-Encoding" not in request.headers
    assert b'name="data"; filename="picture.png"\r\nContent-Type: image/png\r\n\r\n0123456789\r\n--' in body


XML = b'<?xml version="1.0"?><retval>1</retval>'
TOKEN_OF: list[tuple[PlannedMedia, str, bytes, str]] = [
    (item("image"), "image", b'{"photos":{"k":{"token":"p"}}}', "p"),
    (item("file"), "file", b'{"fileId":7,"token":"f"}', "f"),
    (item("video"), "video", XML, "with-link"),
    (item("audio"), "audio", b"<retval>1</retval>", "with-link"),
    (item("animation", content_type="image/gif"), "image", b'{"photos":{"k":{"token":"p"}}}', "p"),
    (item("animation", content_type="video/mp4"), "video", XML, "with-link"),
]


@pytest.mark.parametrize(("one", "asked", "taken", "token"), TOKEN_OF)
async def test_where_the_token_comes_from_depends_on_the_kind(
    one: PlannedMedia, asked: str, taken: bytes, token: str
) -> None:
    hosts = Hosts()
    hosts.taken = web.Response(body=taken)
    async with hosts.running():
        held = await hosts.adapter.upload(one, Bytes(), TARGET)

    assert isinstance(held, Held)
    assert held.provider_id == token
    assert [request.query["type"] for request in hosts.api] == [asked]


UNREADABLE: list[tuple[str, bytes, dict[str, Any]]] = [
    ("image", b'{"token":"wrong-here"}', {}),
    ("image", b'{"photos":{}}', {}),
    ("image", XML, {}),
    ("file", b'{"fileId":7}', {}),
    ("file", b'{"token":""}', {}),
    ("video", b"<retval>0</retval>", {}),
    ("video", b"", {}),
    ("audio", XML, {"token": ""}),
    ("image", b"{}", {"url": 1}),
]


@pytest.mark.parametrize(("kind", "taken", "link"), UNREADABLE)
async def test_an_upload_that_gives_no_token_has_failed_and_may_be_made_again(
    kind: str, taken: bytes, link: dict[str, Any]
) -> None:
    hosts = Hosts()
    hosts.taken = web.Response(body=taken)
    hosts.link |= link
    async with hosts.running():
        answer = await hosts.adapter.upload(item(kind), Bytes(), TARGET)

    assert isinstance(answer, Failed)
    assert (answer.category, answer.code, answer.ambiguous) == ("TRANSIENT", "unreadable_answer", False)


REFUSED = [
    (400, "PERMANENT", "delivery", "upload_refused"),
    (401, "TRANSIENT", "delivery", "upload_refused"),
    (403, "PERMANENT", "delivery", "upload_refused"),
    (404, "TRANSIENT", "delivery", "upload_refused"),
    (413, "PERMANENT", "delivery", "media_too_large"),
    (415, "PERMANENT", "delivery", "media_unsupported"),
    (429, "TRANSIENT", "delivery", "rate_limited"),
    (502, "TRANSIENT", "delivery", "http_502"),
]


@pytest.mark.parametrize(("status", "category", "scope", "code"), REFUSED)
async def test_what_an_upload_host_refuses_is_never_the_channels_fault(
    status: int, category: str, scope: str, code: str
) -> None:
    hosts = Hosts()
    hosts.taken = web.Response(status=status, text="<html>no</html>")
    async with hosts.running():
        answer = await hosts.adapter.upload(item("image"), Bytes(), TARGET)

    assert isinstance(answer, Failed)
    assert (answer.category, answer.scope, answer.code, answer.ambiguous) == (category, scope, code, False)
    assert TOKEN not in repr(answer)


async def test_an_upload_host_that_cannot_be_reached_is_a_failure_like_any_other() -> None:
    hosts = Hosts()
    hosts.link |= {"url": "http://127.0.0.1:1/put"}
    async with hosts.running():
        answer = await hosts.adapter.upload(item("image"), Bytes(), TARGET)

    assert isinstance(answer, Failed)
    assert (answer.category, answer.code, answer.ambiguous) == ("TRANSIENT", "connect", False)
