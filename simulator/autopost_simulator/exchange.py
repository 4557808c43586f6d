"""One provider request from arrival to answer: fault or act, then log, then answer.

The log line comes before the first byte of the answer. Whoever saw an answer finds it there.
"""

import asyncio
import hashlib
import socket
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from aiohttp import web

from autopost_simulator.clock import Clock
from autopost_simulator.faults import Effect, Fault, Faults
from autopost_simulator.fingerprint import fingerprint
from autopost_simulator.journal import Entry, Journal, Platform, Verdict
from autopost_simulator.reply import Reply

LOOK_FOR_HANGUP = 0.5


@dataclass(slots=True, kw_only=True)
class Call:
    """What is known of a request; the platform's endpoint fills it in as it reads."""

    platform: Platform
    token: str
    method: str
    arrived_ns: int
    arrived_at: datetime
    chat: str | None = None
    text: str | None = None
    body_sha256: str = hashlib.sha256(b"").hexdigest()
    message_ids: list[int | str] = field(default_factory=list)


Act = Callable[[], Reply]


class Exchange:
    def __init__(self, clock: Clock, faults: Faults, journal: Journal) -> None:
        self._clock = clock
        self._faults = faults
        self._journal = journal

    def arrive(self, platform: Platform, token: str, method: str) -> Call:
        return Call(
            platform=platform,
            token=fingerprint(token),
            method=method,
            arrived_ns=self._clock.monotonic_ns(),
            arrived_at=self._clock.now(),
        )

    def cut_off(self, request: web.Request, call: Call) -> bool:
        """True when a fault drops the connection before the body is read."""
        fault = self._faults.strike(call, body_read=False)
        if fault is None:
            return False
        self._record(call, None, "reset", fault)
        drop(request)
        return True

    async def answer(self, request: web.Request, call: Call, act: Act) -> web.StreamResponse:
        fault = self._faults.strike(call, body_read=True)
        if fault is None:
            return self._honest(call, act, None)
        if fault.effect.delay:
            await asyncio.sleep(fault.effect.delay)
        if not fault.effect.spoils:
            return self._honest(call, act, fault)
        if fault.effect.accepts:
            act()
        return await self._spoil(request, call, fault)

    def _honest(self, call: Call, act: Act, fault: Fault | None) -> web.Response:
        reply = act()
        self._record(call, reply, reply.verdict, fault)
        return respond(reply)

    async def _spoil(self, request: web.Request, call: Call, fault: Fault) -> web.StreamResponse:
        effect: Effect = fault.effect
        if effect.reset:
            self._record(call, None, "reset", fault)
            drop(request)
            return web.Response()
        if effect.hang:
            self._record(call, None, "hung", fault)
            await until_hung_up(request)
            return web.Response()
        reply = effect.reply(call.platform)
        self._record(call, reply, "faulted", fault)
        return respond(reply)

    def _record(self, call: Call, reply: Reply | None, verdict: Verdict, fault: Fault | None) -> None:
        hung = verdict == "hung"
        self._journal.append(
            Entry(
                seq=self._journal.next_seq(),
                platform=call.platform,
                token=call.token,
                method=call.method,
                chat=call.chat,
                arrived_ns=call.arrived_ns,
                arrived_at=call.arrived_at.isoformat(),
                answered_ns=None if hung else self._clock.monotonic_ns(),
                answered_at=None if hung else self._clock.now().isoformat(),
                status=reply.status if reply else None,
                verdict=verdict,
                error=reply.error if reply else None,
                text=call.text,
                body_sha256=call.body_sha256,
                message_ids=call.message_ids,
                fault=fault.name if fault else None,
            )
        )


def respond(reply: Reply) -> web.Response:
    return web.Response(
        status=reply.status,
        body=reply.body,
        headers=reply.headers,
        content_type=reply.content_type,
        charset=reply.charset,
    )


def drop(request: web.Request) -> None:
    """Close with RST, so that the client sees a reset and not a polite end."""
    transport = request.transport
    if transport is None:
        return
    sock = transport.get_extra_info("socket")
    if sock is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()


async def until_hung_up(request: web.Request) -> None:
    while request.transport is not None and not request.transport.is_closing():  # noqa: ASYNC110  aiohttp offers no event for it
        await asyncio.sleep(LOOK_FOR_HANGUP)
