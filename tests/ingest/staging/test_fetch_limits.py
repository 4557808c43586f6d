"""A fetch ends: with the first byte too many, after a silence, after its time, after three redirects."""

import asyncio
import ssl
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pytest
from aiohttp import web
from autopost_runtime.fetch.fetch import LONGEST_LOCATION, Fetcher, Unfetched
from harness.eventually import eventually
from ingest.support.certificates import Authority
from ingest.support.pictures import GUARD, Pictures, pictures

SECOND = timedelta(seconds=1)
PLENTY = timedelta(seconds=20)


@pytest.fixture(scope="module")
def fetcher() -> Fetcher:
    return Fetcher(GUARD)


async def fetch(
    fetcher: Fetcher,
    url: str,
    *,
    limit: int = 1000,
    within: timedelta = PLENTY,
    idle: timedelta = PLENTY,
    headers: dict[str, str] | None = None,
) -> bytes:
    async with fetcher.fetch(url, limit=limit, within=within, idle=idle, headers=headers) as answer:
        return b"".join([chunk async for chunk in answer.chunks()])


async def why(fetcher: Fetcher, url: str, **limits: timedelta) -> tuple[str, bool]:
    """At once, or nearly: all that a test waits for is far shorter."""
    with pytest.raises(Unfetched) as refused:
        async with asyncio.timeout(10):
            await fetch(fetcher, url, **limits)  # type: ignore[arg-type]
    return refused.value.code, refused.value.final


async def test_what_is_just_small_enough_is_fetched(site: Pictures, fetcher: Fetcher) -> None:
    assert await fetch(fetcher, site.put("/a", b"x" * 1000)) == b"x" * 1000


async def test_what_declares_itself_too_large_is_not_even_read(site: Pictures, fetcher: Fetcher) -> None:
    async def boast(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": "1001"})
        await response.prepare(request)
        await asyncio.Event().wait()
        return response

    assert await why(fetcher, site.answer("/a", boast), idle=SECOND * 5) == ("too_large", True)


async def test_what_turns_out_too_large_is_refused_whatever_it_declared(site: Pictures, fetcher: Fetcher) -> None:
    async def modest(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        response.enable_chunked_encoding()
        await response.prepare(request)
        await response.write(b"x" * 1001)
        return response

    assert await why(fetcher, site.answer("/a", modest)) == ("too_large", True)


async def test_a_stream_without_end_is_left_when_the_limit_is_passed(site: Pictures, fetcher: Fetcher) -> None:
    gone = asyncio.Event()

    async def endless(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        try:
            while True:
                await response.write(b"x" * 100)
        finally:
            gone.set()

    assert await why(fetcher, site.answer("/a", endless)) == ("too_large", True)
    await eventually(gone.is_set)


async def test_a_server_that_falls_silent_is_left(site: Pictures, fetcher: Fetcher) -> None:
    async def silent(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"x")
        await asyncio.Event().wait()
        return response

    assert await why(fetcher, site.answer("/a", silent), idle=SECOND / 5) == ("timeout", False)


async def test_a_server_that_never_answers_is_left(site: Pictures, fetcher: Fetcher) -> None:
    async def never(_: web.Request) -> web.StreamResponse:
        await asyncio.Event().wait()
        return web.Response()

    assert await why(fetcher, site.answer("/a", never), idle=SECOND / 5) == ("timeout", False)


async def test_a_server_that_drips_has_so_long_and_no_longer(site: Pictures, fetcher: Fetcher) -> None:
    async def drip(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b"x")
            await asyncio.sleep(0.05)

    assert await why(fetcher, site.answer("/a", drip), within=SECOND / 2, idle=SECOND) == ("timeout", False)


async def test_a_name_that_is_never_looked_up_ends_too() -> None:
    async def lost(_: str) -> Sequence[str]:
        await asyncio.Event().wait()
        return []

    assert await why(Fetcher(GUARD, resolve=lost), "http://a.example/", within=SECOND / 5) == ("timeout", False)


async def test_a_body_that_ends_before_its_length_is_cut_off(site: Pictures, fetcher: Fetcher) -> None:
    async def cut(request: web.Request) -> web.StreamResponse:
        assert request.transport
        request.transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
        request.transport.close()
        return web.Response()

    assert await why(fetcher, site.answer("/a", cut)) == ("cut_off", False)


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd", "identity, gzip", "x"])
async def test_a_packed_body_is_refused(site: Pictures, fetcher: Fetcher, coding: str) -> None:
    assert await why(fetcher, site.put("/a", b"x", Content_Encoding=coding)) == ("encoded_body", True)


async def test_a_body_packed_for_the_journey_is_refused(site: Pictures, fetcher: Fetcher) -> None:
    async def packed(request: web.Request) -> web.StreamResponse:
        assert request.transport
        request.transport.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n")
        return web.Response()

    assert await why(fetcher, site.answer("/a", packed)) == ("encoded_body", True)


async def test_no_packed_body_is_asked_for(site: Pictures, fetcher: Fetcher) -> None:
    async def tell(request: web.Request) -> web.StreamResponse:
        return web.Response(text=request.headers["Accept-Encoding"])

    assert await fetch(fetcher, site.answer("/a", tell)) == b"identity"


def chain(site: Pictures, length: int) -> str:
    for number in range(length):
        site.put(f"/{number}", b"", 302, Location=f"/{number + 1}")
    site.put(f"/{length}", b"here")
    return f"{site.url}/0"


async def test_three_redirects_are_followed(site: Pictures, fetcher: Fetcher) -> None:
    assert await fetch(fetcher, chain(site, 3)) == b"here"


async def test_a_fourth_redirect_is_not_followed(site: Pictures, fetcher: Fetcher) -> None:
    assert await why(fetcher, chain(site, 4)) == ("too_many_redirects", True)
    assert site.hits["/4"] == 0


async def test_a_redirect_without_a_place_is_refused(site: Pictures, fetcher: Fetcher) -> None:
    assert await why(fetcher, site.put("/a", b"", 301)) == ("bad_redirect", True)


async def test_a_redirect_to_a_very_long_place_is_refused(site: Pictures, fetcher: Fetcher) -> None:
    """Parsing it would hold up the loop; a picture has a shorter URL."""
    place = "/" + "x" * (LONGEST_LOCATION - 1)
    site.put(place, b"here")
    near, far = (site.put(f"/{name}", b"", 302, Location=to) for name, to in (("near", place), ("far", place + "x")))

    assert await fetch(fetcher, near) == b"here"
    assert await why(fetcher, far) == ("bad_redirect", True)


async def test_credentials_of_a_caller_do_not_follow_it_to_another_site(site: Pictures, fetcher: Fetcher) -> None:
    async def tell(request: web.Request) -> web.StreamResponse:
        return web.json_response(sorted(name for name in request.headers if name in given))

    given = {"Authorization": "Bearer x", "If-None-Match": '"1"', "X-Api-Key": "1"}
    async with pictures() as other:
        there, here = other.answer("/a", tell), site.answer("/a", tell)
        away, stay = site.put("/away", b"", 302, Location=there), site.put("/stay", b"", 302, Location=here)
        told = [await fetch(fetcher, url, headers=given) for url in (away, stay)]

    assert told == [b'["If-None-Match"]', b'["Authorization", "If-None-Match", "X-Api-Key"]']


async def test_nobody_there_is_no_reason_to_give_up(site: Pictures, fetcher: Fetcher) -> None:
    assert await why(fetcher, "http://127.0.0.1:1/") == ("connect", False)


@pytest.mark.parametrize("end", [[], OSError("no such name"), UnicodeError("too long")], ids=["none", "error", "odd"])
async def test_a_name_that_is_not_known_is_no_reason_to_give_up(end: list[str] | Exception) -> None:
    async def resolve(_: str) -> Sequence[str]:
        if isinstance(end, Exception):
            raise end
        return end

    assert await why(Fetcher(GUARD, resolve=resolve), "http://a.example/") == ("dns", False)


@pytest.mark.parametrize(("name", "end"), [("media.example", "200"), ("other.example", "tls")])
async def test_the_certificate_is_checked_against_the_name_although_the_address_was_looked_up_before(
    tmp_path: Path, name: str, end: str
) -> None:
    authority = Authority(tmp_path, "media.example")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority.chain)

    async def resolve(_: str) -> Sequence[str]:
        return ["127.0.0.1"]

    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n200")
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context)
    async with server:
        url = f"https://{name}:{server.sockets[0].getsockname()[1]}/"
        fetcher = Fetcher(GUARD, resolve=resolve, ca_bundle=authority.bundle)
        try:
            told = (await fetch(fetcher, url)).decode()
        except Unfetched as exc:
            told = exc.code

    assert told == end
