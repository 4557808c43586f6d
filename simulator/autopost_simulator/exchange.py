"""Handle one provider request: apply a fault or run it, then log it, then answer.

The log line is written before the first byte of the answer, so a client that got an answer finds its line.
"""

import asyncio
import hashlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime

from aiohttp import web

from autopost_simulator.clock import Clock
from autopost_simulator.faults import Fault, Faults
from autopost_simulator.fingerprint import fingerprint
from autopost_simulator.hangup import drop, hung_up, until_hung_up
from autopost_simulator.journal import Entry, Journal, Platform, Verdict
from autopost_simulator.reply import Reply


@dataclass(slots=True, kw_only=True)
class ProviderCall:
    """The data of a request for the log; the endpoint of the platform fills it in."""

    platform: Platform
    token: str
    method: str
    arrived_ns: int
    arrived_at: datetime
    chat: str | None = None
    text: str | None = None
    body_sha256: str = hashlib.sha256(b"").hexdigest()
    message_ids: list[int | str] = field(default_factory=list)
    uploads: int = 0


Act = Callable[[], Reply]


class CallHandler:
    def __init__(self, clock: Clock, faults: Faults, journal: Journal) -> None:
        self._clock = clock
        self._faults = faults
        self._journal = journal

    def arrive(self, platform: Platform, token: str, method: str) -> ProviderCall:
        return ProviderCall(
            platform=platform,
            token=fingerprint(token),
            method=method,
            arrived_ns=self._clock.monotonic_ns(),
            arrived_at=self._clock.now(),
        )

    def cut_off(self, request: web.Request, call: ProviderCall) -> bool:
        """True when a fault drops the connection before the body is read."""
        fault = self._faults.strike(call, body_read=False)
        if fault is None:
            return False
        self._record(call, None, "reset", fault)
        drop(request)
        return True

    async def answer(self, request: web.Request, call: ProviderCall, act: Act) -> web.StreamResponse:
        fault = self._faults.strike(call, body_read=True)
        if fault is None:
            return respond(self.obey(call, act))
        if fault.effect.delay:
            await asyncio.sleep(fault.effect.delay)
        reply = await self._spoil(request, call, act, fault) if fault.effect.spoils else self.obey(call, act, fault)
        if reply is None:
            return web.Response()
        if fault.effect.half:
            return await break_off(request, reply)
        return await dribble(request, reply, fault.effect.drip) if fault.effect.drip else respond(reply)

    def obey(self, call: ProviderCall, act: Act, fault: Fault | None = None) -> Reply:
        reply = act()
        self._record(call, reply, reply.verdict, fault)
        return reply

    async def _spoil(self, request: web.Request, call: ProviderCall, act: Act, fault: Fault) -> Reply | None:
        """``None`` when the client has disconnected."""
        effect = fault.effect
        if effect.accepts:
            act()
        if effect.reset:
            self._record(call, None, "reset", fault)
            drop(request)
            return None
        if effect.hang:
            self._record(call, None, "hung", fault)
            await until_hung_up(request)
            return None
        reply = effect.reply(call.platform)
        self._record(call, reply, "faulted", fault)
        return reply

    def _record(self, call: ProviderCall, reply: Reply | None, verdict: Verdict, fault: Fault | None) -> None:
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
                uploads=call.uploads,
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


async def break_off(request: web.Request, reply: Reply) -> web.StreamResponse:
    """Send the first half of the answer, then close the connection."""
    response = web.StreamResponse(status=reply.status, headers=reply.headers)
    response.content_type = reply.content_type
    response.content_length = len(reply.body)
    with suppress(ConnectionResetError):
        await response.prepare(request)
        await response.write(reply.body[: len(reply.body) // 2])
    if request.transport is not None:
        request.transport.close()
    return response


async def dribble(request: web.Request, reply: Reply, pause: float) -> web.StreamResponse:
    """Send the body byte by byte until the client disconnects."""
    response = web.StreamResponse(status=reply.status, headers=reply.headers)
    response.content_type = reply.content_type
    if reply.charset is not None:
        response.charset = reply.charset
    response.content_length = len(reply.body)
    with suppress(ConnectionResetError):
        await response.prepare(request)
        for position in range(len(reply.body)):
            await response.write(reply.body[position : position + 1])
            await asyncio.sleep(pause)
            if hung_up(request):
                break
    return response
