"""A download is whole, of the right kind, measured and named, or there is none."""

import tracemalloc
from datetime import timedelta
from hashlib import sha256
from typing import Any

import pytest
from aiohttp import web
from autopost_contracts.payload import MediaType
from autopost_ingest.staging.download import Downloaded, Downloader, DownloadLimits, StorageFailed
from autopost_ingest.staging.file_name import LONGEST, file_name
from autopost_ingest.staging.media_types import HEAD, content_type_of, fits
from autopost_runtime.fetch.fetch import Fetcher, Unfetched
from ingest.support.pictures import GIF, GUARD, JPEG, MP4, PDF, PNG, Pictures
from ingest.support.small_disk import small_disk
from yarl import URL

FETCHER = Fetcher(GUARD)
WEBP = {
    "VP8X": b"RIFF____WEBPVP8X" + bytes(8) + (639).to_bytes(3, "little") + (479).to_bytes(3, "little"),
    "VP8L": b"RIFF____WEBPVP8L" + bytes(4) + b"\x2f" + (639 | 479 << 14).to_bytes(4, "little") + bytes(8),
    "VP8 ": b"RIFF____WEBPVP8 " + bytes(10) + (640).to_bytes(2, "little") + (480).to_bytes(2, "little"),
}
BMP = b"BM" + bytes(12) + b"\x28\0\0\0" + (20).to_bytes(4, "little") + (-10).to_bytes(4, "little", signed=True)


async def download(url: str, kind: MediaType = "image", limits: DownloadLimits = DownloadLimits()) -> Downloaded:  # noqa: B008
    async with Downloader(FETCHER, limits).download(url, kind) as medium:
        medium.file.seek(0)
        assert sha256(medium.file.read()).hexdigest() == medium.digest
        return medium


async def why(url: str, kind: MediaType = "image", **limits: Any) -> tuple[str, bool]:
    with pytest.raises(Unfetched) as refused:
        await download(url, kind, DownloadLimits(**limits))
    return refused.value.code, refused.value.final


async def test_a_picture_is_known_by_its_bytes_measured_and_named(site: Pictures) -> None:
    url = site.put("/dir/cat one.png", PNG, Content_Type="text/html")

    medium = await download(url)

    assert medium.blob_ref == f"sha256:{sha256(PNG).hexdigest()}"
    assert (medium.size, medium.content_type) == (len(PNG), "image/png")
    assert (medium.width, medium.height, medium.name) == (40, 30, "cat one.png")


@pytest.mark.parametrize(
    ("content", "size"),
    [
        (PNG, (40, 30)),
        (GIF, (7, 5)),
        (JPEG, (400, 300)),
        (BMP, (20, 10)),
        *((body, (640, 480)) for body in WEBP.values()),
        (JPEG[:100], (None, None)),
        (PNG[:20], (None, None)),
        (b"\xff\xd8\xff\xe0\x00", (None, None)),
        (b"\xff\xd8\xff\xe0\x00\x00" * 500, (None, None)),
    ],
)
async def test_a_picture_is_as_large_as_its_header_says(
    site: Pictures, content: bytes, size: tuple[int | None, int | None]
) -> None:
    medium = await download(site.put("/a", content))

    assert (medium.width, medium.height) == size


@pytest.mark.parametrize(
    ("head", "content_type"),
    [
        (PNG, "image/png"),
        (JPEG, "image/jpeg"),
        (GIF, "image/gif"),
        (WEBP["VP8X"], "image/webp"),
        (BMP, "image/bmp"),
        (MP4, "video/mp4"),
        (b"\0\0\0\x14ftypqt  ", "video/quicktime"),
        (b"\0\0\0\x14ftypM4A ", "audio/mp4"),
        (b"\0\0\0\x14ftypheic", "image/heic"),
        (b"\x1a\x45\xdf\xa3\x01\x42\x82\x84webm", "video/webm"),
        (b"\x1a\x45\xdf\xa3\x01\x42\x82\x88matroska", "video/x-matroska"),
        (b"RIFF____AVI LIST", "video/x-msvideo"),
        (b"RIFF____WAVEfmt ", "audio/wav"),
        (b"ID3\x04", "audio/mpeg"),
        (b"\xff\xfb\x90\x00", "audio/mpeg"),
        (b"\xff\xf1\x50\x80", "audio/aac"),
        (b"OggS\0", "audio/ogg"),
        (b"fLaC\0", "audio/flac"),
        (PDF, "application/pdf"),
        (b"PK\x03\x04\x14", "application/zip"),
        (b"\x1f\x8b\x08", "application/gzip"),
        (b"Rar!\x1a\x07\x01", "application/vnd.rar"),
        (b"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "application/x-ole-storage"),
        ("a,b\nцена,10\n".encode(), "text/plain"),
        (("я" * HEAD).encode()[1 : HEAD + 1], "application/octet-stream"),
        (("x" + "я" * HEAD).encode()[:HEAD], "text/plain"),
        (b"BMW is a car", "text/plain"),
        (b"____WEBP____WEBP", "text/plain"),
        (b"\xff\xfeh\0i\0", "application/octet-stream"),
        (b"\0\1\2\3", "application/octet-stream"),
        (b"<?xml version='1.0'?><feed/>", "text/plain"),
        (b"<!DOCTYPE html><p>", None),
        (b"\xef\xbb\xbf \n<HTML>", None),
        (b"<!-- x --><svg xmlns='x'>", None),
        (b"<?xml version='1.0'?><svg onload='x'>", None),
        ("\ufeff<script>".encode("utf-16-le"), None),
        (b"x" * 500 + b"<iframe src=x>", None),
    ],
)
def test_bytes_are_what_their_first_ones_say(head: bytes, content_type: str | None) -> None:
    assert content_type_of(head[:HEAD]) == content_type


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        ("image", (PNG, JPEG, GIF), (MP4, PDF, b"text", b"\0\0\0\x14ftypheic")),
        ("video", (MP4,), (PNG, GIF, PDF, b"ID3")),
        ("animation", (GIF, MP4), (PNG, JPEG, b"ID3")),
        ("audio", (b"ID3", b"OggS"), (MP4, PNG)),
        ("file", (PNG, MP4, PDF, b"text", b"\0\1"), ()),
    ],
)
def test_each_kind_takes_what_can_be_shown_as_it(
    kind: MediaType, good: tuple[bytes, ...], bad: tuple[bytes, ...]
) -> None:
    assert [fits(kind, content_type_of(body) or "") for body in (*good, *bad)] == [True] * len(good) + [False] * len(
        bad
    )


@pytest.mark.parametrize(("kind", "body"), [("image", PDF), ("video", PNG), ("file", b"<html>gone</html>")])
async def test_what_is_not_of_its_kind_is_refused_whatever_is_declared(
    site: Pictures, kind: MediaType, body: bytes
) -> None:
    assert await why(site.put("/a.png", body, Content_Type="image/png"), kind) == ("wrong_type", True)


@pytest.mark.parametrize("kind", ["image", "animation"])
async def test_a_picture_that_is_a_page_as_well_goes_as_the_picture_that_its_first_bytes_say(
    site: Pictures, kind: MediaType
) -> None:
    """Whatever else it can be read as, and whatever it is said to be, nobody is told so."""
    polyglot = GIF + b"/*<!DOCTYPE html><script>alert(1)</script>*/" + b"PK\x03\x04" + PDF

    found = await download(site.put("/a.html", polyglot, Content_Type="text/html"), kind)

    assert (found.content_type, found.size) == ("image/gif", len(polyglot))
    assert await why(site.put("/a.gif", PDF + GIF, Content_Type="image/gif"), kind) == ("wrong_type", True)


async def test_each_kind_has_its_own_limit(site: Pictures) -> None:
    limits = {"image": 50, "video": 100, "file": 200}
    sizes: dict[MediaType, int] = {"image": 50, "video": 100, "animation": 100, "audio": 200, "file": 200}
    heads: dict[MediaType, bytes] = {"image": GIF, "animation": GIF, "video": MP4, "audio": b"ID3", "file": b"x"}

    for kind, size in sizes.items():
        exact, over = heads[kind].ljust(size, b"\0")[:size], heads[kind].ljust(size + 1, b"\0")
        assert (await download(site.put("/a", exact), kind, DownloadLimits(**limits))).size == size
        assert await why(site.put("/a", over), kind, **limits) == ("too_large", True)


def test_the_limits_are_those_of_the_requirements() -> None:
    limits = DownloadLimits()

    assert [limits.of(kind) >> 20 for kind in ("image", "video", "file", "audio")] == [10, 50, 50, 50]
    assert limits.within == timedelta(seconds=30)


@pytest.mark.parametrize(
    ("status", "final"),
    [
        *((404, True), (410, True), (403, True), (401, True), (408, False), (429, False), (500, False)),
        *((503, False), (204, False), (206, False), (304, False)),
    ],
)
async def test_an_answer_that_is_no_picture_says_whether_to_ask_again(site: Pictures, status: int, final: bool) -> None:
    assert await why(site.put("/a", b"", status)) == (f"http_{status}", final)


@pytest.mark.parametrize(
    ("told", "heard"),
    [("7", 7), ("0", 0), ("999999999", 600), ("99999999999999999999", None), ("soon", None), ("-1", None), ("²", None)],
)
async def test_a_server_may_ask_us_to_wait_but_not_for_ever(site: Pictures, told: str, heard: int | None) -> None:
    with pytest.raises(Unfetched) as refused:
        await download(site.put("/a", b"", 429, Retry_After=told))

    wait = refused.value.retry_after
    assert (None if wait is None else wait.total_seconds()) == heard


async def test_nothing_is_no_picture(site: Pictures) -> None:
    assert await why(site.put("/a", b"")) == ("empty", False)


async def test_half_a_picture_is_no_picture(site: Pictures) -> None:
    async def cut(request: web.Request) -> web.StreamResponse:
        assert request.transport
        request.transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n" + PNG)
        request.transport.close()
        return web.Response()

    assert await why(site.answer("/a", cut)) == ("cut_off", False)


async def test_memory_does_not_grow_with_what_is_downloaded(site: Pictures) -> None:
    async def long(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(MP4)
        for _ in range(40):
            await response.write(bytes(512 * 1024))
        return response

    url = site.answer("/a", long)
    tracemalloc.start()
    try:
        async with Downloader(FETCHER, DownloadLimits()).download(url, "video") as medium:
            peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert medium.size > 20 * 1024 * 1024
    assert peak < 6 * 1024 * 1024


@pytest.mark.parametrize(
    ("url", "disposition", "content_type", "name"),
    [
        ("http://a.example/x/cat.png", None, "image/png", "cat.png"),
        ("http://a.example/cat.JPEG?w=1", None, "image/jpeg", "cat.JPEG"),
        ("http://a.example/", None, "image/png", None),
        ("http://a.example/cat", None, "image/png", "cat.png"),
        ("http://a.example/cat.php", None, "image/jpeg", "cat.php.jpg"),
        ("http://a.example/%D0%BA%D0%BE%D1%82.png", None, "image/png", "кот.png"),
        ("http://a.example/..%2F..%2Fetc%2Fpasswd", None, "text/plain", "passwd"),
        ("http://a.example/a%5Cb%00c.txt", None, "text/plain", "bc.txt"),
        ("http://a.example/gpj%E2%80%AEexe.png", None, "image/png", "gpjexe.png"),
        ("http://a.example/x", 'attachment; filename="list.pdf"', "application/pdf", "list.pdf"),
        ("http://a.example/x", r'attachment; filename="a\"b.pdf"', "application/pdf", 'a"b.pdf'),
        ("http://a.example/x", "attachment; filename=list.pdf; x=1", "application/pdf", "list.pdf"),
        ("http://a.example/x", "a; filename=\"x.pdf\"; filename*=UTF-8''%D0%BA.pdf", "application/pdf", "к.pdf"),
        ("http://a.example/x", "a; filename*=iso-8859-1'de'f%FCr.pdf", "application/pdf", "für.pdf"),
        ("http://a.example/x", 'attachment; filename="../../x.html"', "application/pdf", "x.html.pdf"),
        ("http://a.example/x.bin", "inline", "application/octet-stream", "x.bin"),
        ("http://a.example/x", 'attachment; filename="..."', "application/octet-stream", None),
        ("http://a.example/report.docx", None, "application/zip", "report.docx"),
        ("http://a.example/x", f'a; filename="{"я" * 300}.docx"', "application/zip", "я" * (LONGEST - 5) + ".docx"),
        ("http://a.example/x", f'a; filename="{"я" * 300}"', "image/png", "я" * (LONGEST - 6) + ".png"),
    ],
)
def test_a_name_is_what_server_or_url_call_it_made_harmless(
    url: str, disposition: str | None, content_type: str, name: str | None
) -> None:
    assert file_name(URL(url), disposition, content_type) == name


@pytest.mark.parametrize(("size", "room"), [(1_000_000, 100_000), (6_000, 4_096)])
async def test_a_full_disk_is_no_fault_of_who_shows_the_picture(site: Pictures, size: int, room: int) -> None:
    """Also when it is noticed only as the last bytes leave the buffer."""
    url = site.put("/a.png", PNG.ljust(size, b"\0"))

    with small_disk(room), pytest.raises(StorageFailed):
        await download(url)
