"""Limits on open connections, in total and per address, and the responses to a connection that is refused."""

import asyncio
from collections import Counter
from typing import cast

from autopost_runtime.http.problem import HttpProblem, respond


def _response_bytes(problem: HttpProblem) -> bytes:
    """The whole response as bytes, because aiohttp writes none without a request."""
    body = cast(bytes, respond(problem).body)
    headers = {**problem.headers, "Content-Type": "application/problem+json", "Content-Length": len(body)}
    lines = [f"HTTP/1.1 {problem.status} {problem.title}", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "Connection: close", "", ""]).encode() + body


HEAD_TOO_SLOW = _response_bytes(HttpProblem(408, "Request Timeout", "the request head was not complete in time"))
TOO_MANY_CONNECTIONS = _response_bytes(
    HttpProblem(503, "Service Unavailable", "too many open connections, retry later", headers={"Retry-After": "1"})
)


class ConnectionLimits:
    """Counts open connections by address."""

    def __init__(self, most: int, most_per_address: int) -> None:
        self._most = most
        self._most_per_address = most_per_address
        self._by_address: Counter[str] = Counter()
        self._total = 0

    def acquire(self, address: str) -> bool:
        """``False`` at the limit; otherwise the connection must ``release``."""
        if self._total >= self._most or self._by_address[address] >= self._most_per_address:
            return False
        self._total += 1
        self._by_address[address] += 1
        return True

    def release(self, address: str) -> None:
        self._total -= 1
        self._by_address[address] -= 1
        if not self._by_address[address]:
            del self._by_address[address]


def address_of(transport: asyncio.BaseTransport) -> str:
    peer = transport.get_extra_info("peername")
    return str(peer[0]) if isinstance(peer, tuple) else ""
