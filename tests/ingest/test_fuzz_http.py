"""Raw requests over sockets, most of them broken in their framing: no 5xx, no row of a refused one, bounded memory.

Runs against ingest as a process of its own, so that its memory is its own.
"""

import asyncio
import os
import random
import re
import sys
from asyncio.subprocess import PIPE, create_subprocess_exec
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest
from harness.databases import Database

from ingest.door import DEMO
from ingest.mutations import Mutator
from ingest.opening import tell

REQUESTS = 5_000 if os.environ.get("CI") else 1_000
AT_ONCE = 100
PATIENCE = 20.0
MEMORY = 150 * 1024 * 1024

STATUS = re.compile(rb"HTTP/1\.[01] ([0-9]{3})")


@asynccontextmanager
async def ingest(database: Database) -> AsyncIterator[tuple[int, int]]:
    """Its port and its process id."""
    env = {
        "PATH": os.defpath,
        "AUTOPOST_DATABASE_URL": database.url,
        "AUTOPOST_BODY_TIMEOUT": "300ms",
        "AUTOPOST_HEAD_TIMEOUT": "300ms",
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


class Liar:
    """Requests that are wrong on purpose; ``secret`` is right in all of them, so that they get as far as they can."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._bodies = Mutator(seed)
        self._last = ["Connection: close"]

    def request(self) -> bytes:
        return self._random.choice(self._kinds())()

    def _kinds(self) -> tuple[Callable[[], bytes], ...]:
        return (
            *(self.plain, self.plain, self.chunked, self.broken_chunks, self.two_lengths, self.length_and_chunks),
            *(self.wrong_length, self.huge_head, self.odd_head, self.pipelined, self.cut, self.noise, self.large),
        )

    def head(self, *headers: str, path: str = "/v1/posts") -> bytes:
        lines = [f"POST {path} HTTP/1.1", "Host: x", f"Authorization: Bearer {DEMO}", *headers, *self._last, "", ""]
        return "\r\n".join(lines).encode("latin-1", "replace")

    def plain(self) -> bytes:
        body = self._bodies.body()
        path = self._random.choice(("/v1/posts", "/v1/posts/x", "/v1/bot/max", "/nowhere", "/v1/posts?x=%ff"))
        return self.head(f"Content-Length: {len(body)}", path=path) + body

    def chunked(self) -> bytes:
        body = self._bodies.body()
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
        return self.head(f"Content-Length: {length}") + b'{"text": "a"}'

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


async def answers(port: int, request: bytes, early_close: bool) -> list[int]:
    """Every status that came back before the connection ended."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(request)
        if early_close:
            return []
        async with asyncio.timeout(PATIENCE):
            return [int(status) for status in STATUS.findall(await reader.read())]
    except ConnectionError:
        return []
    finally:
        writer.close()


def peak_memory(pid: int) -> int:
    told = Path(f"/proc/{pid}/status").read_text()
    return int(told.partition("VmHWM:")[2].split()[0]) * 1024


async def test_raw_requests_lead_to_no_5xx_and_a_bounded_memory(
    seeded_database: Database, capfd: pytest.CaptureFixture[str]
) -> None:
    await seeded_database.pool.execute("UPDATE workspace_endpoints SET ingress_rps = NULL")
    liar, statuses, chance = Liar(seed=8), Counter[int](), random.Random(9)
    requests = iter([(liar.request(), chance.random() < 0.1) for _ in range(REQUESTS)])
    async with ingest(seeded_database) as (port, pid):

        async def send() -> None:
            for request, early_close in requests:
                statuses.update(await answers(port, request, early_close))

        await asyncio.gather(*(send() for _ in range(AT_ONCE)))
        peak = peak_memory(pid)

    tell(capfd, f"{REQUESTS} requests: {dict(sorted(statuses.items()))}, peak memory {peak / 1024 / 1024:.0f} MiB")
    assert all(status < 500 for status in statuses)
    assert statuses[202] > 0
    assert peak < MEMORY
    receipts = await seeded_database.pool.fetchval("SELECT count(*) FROM ingress_receipts")
    assert receipts >= statuses[202]
    orphans = await seeded_database.pool.fetchval(
        "SELECT count(*) FROM messages m "
        "WHERE NOT EXISTS (SELECT FROM ingress_receipts r WHERE r.run_id = m.first_ingest_run_id)"
    )
    assert orphans == 0
