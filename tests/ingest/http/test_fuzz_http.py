"""Raw requests over sockets, most of them broken in their framing: no 5xx, no row of a refused one, bounded memory.

Runs against ingest as a process of its own, so that its memory is its own.
"""

import asyncio
import gzip
import os
import random
import re
import sys
from asyncio.subprocess import PIPE, create_subprocess_exec
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import msgspec
import pytest
from harness.databases import Database
from harness.full import FULL
from ingest.support.ingest_client import DEMO, TABLES
from ingest.support.ingest_server import tell
from ingest.support.memory import ALLOWED, peak_memory
from ingest.support.mutations import Mutator
from msgspec import Struct

pytestmark = pytest.mark.time_limit(480)

REQUESTS = 5_000 if FULL else 1_000
AT_ONCE = 100
PATIENCE = 20.0

STATUS = re.compile(rb"HTTP/1\.[01] ([0-9]{3})")


@asynccontextmanager
async def ingest(database: Database, patience: str = "300ms") -> AsyncIterator[tuple[int, int]]:
    """Its port and its process id."""
    env = {
        "PATH": os.defpath,
        "AUTOPOST_DATABASE_URL": database.url,
        "AUTOPOST_BODY_TIMEOUT": patience,
        "AUTOPOST_HEAD_TIMEOUT": patience,
    }
    process = await create_subprocess_exec(sys.executable, "-m", "autopost_ingest", env=env, stdout=PIPE)
    assert process.stdout is not None
    try:
        async with asyncio.timeout(30):
            while (line := msgspec.json.decode(await process.stdout.readline()))["event"] != "ingest.listening":
                continue
        silent = asyncio.create_task(process.stdout.read())
        yield int(line["url"].rpartition(":")[2]), process.pid
        silent.cancel()
    finally:
        process.kill()
        await process.wait()


class Lie(Struct):
    request: bytes
    bodies: list[bytes]
    """In the words of each there is a source_ref like no other."""
    statuses: list[int] = []
    cut_short: bool = False
    """Its sender did not hear all that was answered."""


class Liar:
    """Requests that are wrong on purpose; ``secret`` is right in all of them, so that they get as far as they can."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._bodies = Mutator(seed, refs=True)
        self._said: list[bytes] = []
        self._last = ["Connection: close"]

    def request(self) -> "Lie":
        self._said = []
        request = self._random.choice(self._kinds())()
        return Lie(request, self._said)

    def body(self) -> bytes:
        self._said.append(self._bodies.body())
        return self._said[-1]

    def _kinds(self) -> tuple[Callable[[], bytes], ...]:
        return (
            *(self.plain, self.plain, self.chunked, self.broken_chunks, self.two_lengths, self.length_and_chunks),
            *(self.wrong_length, self.huge_head, self.odd_head, self.pipelined, self.cut, self.noise, self.large),
        )

    def head(self, *headers: str, path: str = "/v1/posts") -> bytes:
        lines = [f"POST {path} HTTP/1.1", "Host: x", f"Authorization: Bearer {DEMO}", *headers, *self._last, "", ""]
        return "\r\n".join(lines).encode("latin-1", "replace")

    def plain(self) -> bytes:
        body = self.body()
        path = self._random.choice(("/v1/posts", "/v1/posts/x", "/v1/bot/max", "/nowhere", "/v1/posts?x=%ff"))
        return self.head(f"Content-Length: {len(body)}", path=path) + body

    def chunked(self) -> bytes:
        body = self.body()
        pieces = [body[at : at + 50] for at in range(0, len(body), 50)]
        told = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces)
        return self.head("Transfer-Encoding: chunked") + told + b"0\r\n\r\n"

    def broken_chunks(self) -> bytes:
        size = self._random.choice(
            (b"zz", b"-1", b"", b"ffffffffffffffffff", b"5;" + b"x" * 5000, b"0x5", b"5 5", b"9")
        )
        end = self._random.choice((b"\r\n0\r\n\r\n", b"\n0\n\n", b"", b"\r\n0\r\nTrailer: x\r\n\r\n"))
        return self.head("Transfer-Encoding: chunked") + size + b"\r\nhello" + end

    def two_lengths(self) -> bytes:
        first, second = self._random.choice(((3, 4), (3, 3), (0, 3), ("3, 4", 3), ("+3", 3), (3, "0x3")))
        return self.head(f"Content-Length: {first}", f"Content-Length: {second}") + b"{} "

    def length_and_chunks(self) -> bytes:
        coding = self._random.choice(("chunked", "Chunked", "gzip, chunked", "chunked, chunked", "identity", "x"))
        headers = [f"Transfer-Encoding: {coding}", "Content-Length: 5"]
        self._random.shuffle(headers)
        return self.head(*headers[: self._random.choice((1, 2))]) + b"5\r\nhello\r\n0\r\n\r\n"

    def wrong_length(self) -> bytes:
        length = self._random.choice((-1, "", "abc", "1e3", "9" * 30, 10**9, 300_000, 20, 1, "\xb2"))
        self._said.append(b'{"text": "a", "source_ref": "%s"}' % self._random.randbytes(16).hex().encode())
        return self.head(f"Content-Length: {length}") + self._said[-1]

    def huge_head(self) -> bytes:
        many = [f"X-{number}: {'y' * 50}" for number in range(self._random.choice((90, 101, 5000)))]
        long = f"X-Long: {'a' * self._random.choice((8000, 8191, 100_000, 1_000_000))}"
        return self._random.choice((self.head(*many), self.head(long), self.head(path="/" + "a" * 100_000)))

    def odd_head(self) -> bytes:
        odd = self._random.choice(
            (
                *(
                    "X: a\x00b",
                    "X : a",
                    ": a",
                    "X",
                    " folded: a",
                    "X: a\r\n continued",
                    "Expect: 100-continue",
                    "Expect: x",
                ),
                *(
                    "Upgrade: websocket",
                    "Connection: upgrade\r\nUpgrade: h2c",
                    "Content-Type: \xff",
                    "Content-Encoding: gzip",
                ),
                *("Host: y", "Content-Type: a/b; charset=\x01", "traceparent: 00-zz-zz-zz", "webhook-id: 1"),
            )
        )
        return self.head(odd, "Content-Length: 2") + b"{}"

    def pipelined(self) -> bytes:
        self._last = []
        first = [self._random.choice((self.plain, self.chunked, self.wrong_length))() for _ in range(4)]
        self._last = ["Connection: close"]
        return b"".join(first) + self.plain()

    def cut(self) -> bytes:
        whole = self.plain()
        return whole[: self._random.randrange(1, len(whole))]

    def noise(self) -> bytes:
        first = self._random.choice(
            (b"", b"GET / HTTP/9.9\r\n\r\n", b"POST\r\n\r\n", b"\r\n\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\n")
        )
        return first + self._random.randbytes(self._random.randrange(300))

    def large(self) -> bytes:
        return self.head("Transfer-Encoding: chunked") + b"8000\r\n%s\r\n" % (b" " * 0x8000) * 12


async def tell_lie(port: int, lie: Lie, early_close: bool) -> None:
    """Notes every status that came back before the connection ended."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    heard = b""
    try:
        writer.write(lie.request)
        lie.cut_short = early_close
        async with asyncio.timeout(PATIENCE):
            while not early_close and (piece := await reader.read(65536)):
                heard += piece
    except ConnectionError:
        lie.cut_short = True
    finally:
        writer.close()
    lie.statuses = [int(status) for status in STATUS.findall(heard)]


async def test_raw_requests_lead_to_no_5xx_a_bounded_memory_and_rows_of_what_was_accepted(
    seeded_database: Database, capfd: pytest.CaptureFixture[str]
) -> None:
    await seeded_database.pool.execute("UPDATE workspace_endpoints SET ingress_rps = NULL")
    liar, chance = Liar(seed=8), random.Random(9)
    lies = [liar.request() for _ in range(REQUESTS)]
    to_tell = iter([(lie, chance.random() < 0.1) for lie in lies])
    async with ingest(seeded_database) as (port, pid):

        async def send() -> None:
            for lie, early_close in to_tell:
                await tell_lie(port, lie, early_close)

        await asyncio.gather(*(send() for _ in range(AT_ONCE)))
        peak = peak_memory(pid)

    statuses = Counter(status for lie in lies for status in lie.statuses)
    tell(capfd, f"{REQUESTS} requests: {dict(sorted(statuses.items()))}, peak memory {peak / 1024 / 1024:.0f} MiB")
    assert all(status < 500 for status in statuses)
    assert statuses[202] > 0
    assert peak < ALLOWED
    kept = await seeded_database.pool.fetch("SELECT source_ref FROM ingress_receipts")
    owners = Counter(owner(lies, ref["source_ref"].encode()) for ref in kept)
    for place, lie in enumerate(lies):
        accepted = lie.statuses.count(202)
        assert accepted == owners[place] or (lie.cut_short and accepted < owners[place] <= len(lie.bodies)), lie.request
    orphans = await seeded_database.pool.fetchval(
        "SELECT count(*) FROM messages m "
        "WHERE NOT EXISTS (SELECT FROM ingress_receipts r WHERE r.run_id = m.first_ingest_run_id) AND EXISTS "
        "(SELECT FROM deliveries d WHERE d.message_id = m.message_id AND d.status <> 'failed_permanent')"
    )
    assert orphans == 0


def owner(lies: list[Lie], ref: bytes) -> int:
    [place] = [place for place, lie in enumerate(lies) if any(ref in body for body in lie.bodies)]
    return place


async def test_bodies_that_would_fill_the_memory_are_refused_without_filling_it(seeded_database: Database) -> None:
    """Thirty MiB in chunks, and a few hundred KiB that unpack to two hundred MiB; ten of each at once."""
    head = f"POST /v1/posts HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {DEMO}\r\n"
    bomb = gzip.compress(bytes(200 * 1024 * 1024), compresslevel=9)
    bombs = [
        f"{head}Content-Encoding: gzip\r\nContent-Length: {len(bomb)}\r\n\r\n".encode() + bomb,
        f"{head}Transfer-Encoding: gzip, chunked\r\n\r\n{len(bomb):x}\r\n".encode() + bomb + b"\r\n0\r\n\r\n",
    ]
    chunk = b"8000\r\n%s\r\n" % bytes(0x8000)
    endless = f"{head}Transfer-Encoding: chunked\r\n\r\n".encode() + chunk * 960
    lies = [Lie(request, []) for request in [endless, *bombs] * 10]
    async with ingest(seeded_database, patience="20s") as (port, pid):
        await asyncio.gather(*(tell_lie(port, lie, early_close=False) for lie in lies))
        peak = peak_memory(pid)

    assert peak < ALLOWED
    assert {status for lie in lies for status in lie.statuses} == {413, 415}
    for table in TABLES:
        assert await seeded_database.pool.fetchval(f"SELECT count(*) FROM {table}") == 0
