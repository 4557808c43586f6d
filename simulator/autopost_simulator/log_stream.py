"""Stream the log as a response; with ``follow`` also new entries.

Writing waits until the reader has received the previous chunk, so a slow reader delays only itself.
"""

import asyncio
from contextlib import suppress

from aiohttp import web

from autopost_simulator.hangup import LOOK_FOR_HANGUP, hung_up
from autopost_simulator.journal import Journal
from autopost_simulator.log_query import LogQuery, LogReader


async def write_log(request: web.Request, journal: Journal, query: LogQuery) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "application/x-ndjson", "Cache-Control": "no-store"})
    await response.prepare(request)
    reader = LogReader(query, journal)
    with suppress(ConnectionResetError):
        if query.last is not None:
            await response.write(reader.take_newest(query.last))
        await _write_until(journal.last, reader, response)
        if query.follow:
            await _follow(request, journal, reader, response)
        await response.write_eof()
    return response


async def _write_until(last: int, reader: LogReader, response: web.StreamResponse) -> None:
    while reader.position < last and not reader.finished:
        await response.write(reader.take())
        await asyncio.sleep(0)


async def _follow(request: web.Request, journal: Journal, reader: LogReader, response: web.StreamResponse) -> None:
    with journal.listening() as news:
        while not reader.finished and not hung_up(request):
            news.clear()
            await _write_until(journal.last, reader, response)
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_FOR_HANGUP):
                    await news.wait()
