"""Parse documents in worker processes, one per workspace at a time, so that a hostile document delays only its own."""

import asyncio
from collections.abc import Hashable
from copy import copy
from datetime import timedelta
from typing import Self

import msgspec
from autopost_runtime.lifecycle.fair_slots import QueueFull
from autopost_runtime.workers.worker_process import CallFailed, TooComplex, WorkerProcesses
from msgspec import Struct

from autopost_ingest.pull.endings import PullFailed, PullRejected
from autopost_ingest.pull.items import Item
from autopost_ingest.pull.parsing.reading import ParseFailed, ParseRequest, parse_document

CPU_LIMIT = timedelta(seconds=1)
MOST_WAITING = 100
"""Queued documents per workspace: the maximum of its concurrent pulls."""
A_WHILE = 128 * 1024
"""Bytes of items that are decoded before the event loop runs other tasks."""

_items: msgspec.msgpack.Decoder[Item] = msgspec.msgpack.Decoder(Item)


class ParsedDocument(Struct, frozen=True, kw_only=True):
    items: tuple[Item, ...]
    complete: bool
    next: str | None


class DocumentReader:
    def __init__(self, processes: int = 2, cpu: timedelta = CPU_LIMIT) -> None:
        self._workers = WorkerProcesses(processes, per_holder=1, waiting=MOST_WAITING, cpu=cpu)
        self._cpu = cpu
        self._whose: Hashable = None

    async def __aenter__(self) -> Self:
        await self._workers.__aenter__()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._workers.__aexit__(*exc)

    def on_behalf_of(self, whose: Hashable) -> Self:
        made = copy(self)
        made._whose = whose
        return made

    async def read(self, question: ParseRequest) -> ParsedDocument:
        """Raises ``PullRejected`` or ``PullFailed``."""
        try:
            found = await self._workers.run(parse_document, question, holder=self._whose)
        except TooComplex:
            limit = f"{self._cpu.total_seconds():g} s of CPU time"
            raise PullRejected("unreadable", f"parsing exceeds {limit} or the memory limit") from None
        except CallFailed as exc:
            raise PullRejected("unreadable", f"parsing failed: {exc.code}") from None
        except QueueFull:
            raise PullFailed("at_capacity", "all parser processes are busy, retried by the next pull") from None
        if isinstance(found, ParseFailed):
            raise PullRejected("unreadable", found.reason)
        return ParsedDocument(items=await _decoded(found.items), complete=found.complete, next=found.next)


async def _decoded(encoded: tuple[msgspec.Raw, ...]) -> tuple[Item, ...]:
    """Decode in portions, because many items would block the event loop."""
    items, size = [], 0
    for each in encoded:
        items.append(_items.decode(each))
        size += len(memoryview(each))
        if size > A_WHILE:
            size = 0
            await asyncio.sleep(0)
    return tuple(items)
