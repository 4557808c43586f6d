"""Fetch untrusted URLs, or post to them: never in internal networks, and with time and size limits.

A name is resolved once, every address is checked, and the connection uses one of the checked addresses; there is no
second look-up. Each redirect is checked the same way. The certificate is verified against the name. Our proxies,
cookies and credentials are not used.
"""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from copy import copy
from datetime import timedelta
from pathlib import Path
from typing import Any, Self

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from autopost_runtime.fetch.addresses import Guard, is_number
from autopost_runtime.fetch.dns import Names
from autopost_runtime.fetch.tls import trusting
from autopost_runtime.telemetry.logs import get_logger

Resolve = Callable[[str], Awaitable[Sequence[str]]]

REDIRECTS = 3
LONGEST_LOCATION = 2048
"""Characters; decoding a long internationalised host name takes 0.1 s."""
CONNECT_LIMIT = timedelta(seconds=10)
CHUNK = 64 * 1024
UNKNOWN_AFTER = timedelta(seconds=1)
"""Minimum duration of a look-up without a usable address, so that its timing does not tell the reason."""
_REDIRECTING = frozenset({301, 302, 303, 307, 308})
_FOR_ANY_SITE = frozenset({"accept", "accept-language", "if-none-match", "if-modified-since", "range"})
"""Headers sent to other sites after a redirect; any other header may be a credential."""


class Unfetched(Exception):  # noqa: N818  named for what happened
    """``code`` is the reason in one word; ``final`` when a retry would fail too."""

    def __init__(self, code: str, *, final: bool = False, retry_after: timedelta | None = None) -> None:
        super().__init__(code)
        self.code = code
        self.final = final
        self.retry_after = retry_after


class Fetched:
    """A response with an unread body, valid inside its ``async with``."""

    def __init__(self, response: aiohttp.ClientResponse, limit: int) -> None:
        self._response = response
        self._limit = limit
        self.status = response.status
        self.headers: Mapping[str, str] = response.headers
        self.url = response.url

    async def chunks(self) -> AsyncIterator[bytes]:
        """Raises ``Unfetched`` ``too_large`` at the first byte over the limit, whatever Content-Length says."""
        if (self._response.content_length or 0) > self._limit:
            raise Unfetched("too_large", final=True)
        size = 0
        async for chunk in self._response.content.iter_chunked(CHUNK):
            size += len(chunk)
            if size > self._limit:
                raise Unfetched("too_large", final=True)
            yield chunk


class Fetcher:
    def __init__(
        self,
        guard: Guard,
        *,
        resolve: Resolve | None = None,
        names: Names | None = None,
        ca_bundle: Path | None = None,
        unknown_after: timedelta = UNKNOWN_AFTER,
    ) -> None:
        self._guard = guard
        self._names = names or Names()
        self._whose: Hashable = None
        self._resolve = resolve
        self._unknown_after = unknown_after
        self._tls = trusting(ca_bundle)

    def on_behalf_of(self, whose: Hashable) -> Self:
        """A fetcher whose look-ups use the share of ``whose``."""
        made = copy(self)
        made._whose = whose
        return made

    async def look_up(self, host: str) -> Sequence[str]:
        """Every address of a name, unchecked. Raises ``OSError`` or ``UnicodeError``."""
        return await (self._resolve(host) if self._resolve else self._names.look_up(host, self._whose))

    @asynccontextmanager
    async def fetch(
        self, url: str, *, limit: int, within: timedelta, idle: timedelta, headers: Mapping[str, str] | None = None
    ) -> AsyncIterator[Fetched]:
        """The first response that is not a redirect, with any status. ``within`` limits the whole fetch, ``idle`` a
        pause. Raises ``Unfetched``, also while the body is read."""
        limits = aiohttp.ClientTimeout(
            total=None, sock_connect=CONNECT_LIMIT.total_seconds(), sock_read=idle.total_seconds()
        )
        with _failures_named():
            async with asyncio.timeout(within.total_seconds()), self._final(_parsed(url), headers or {}, limits) as got:
                _refuse_encoded(got)
                yield Fetched(got, limit)

    async def post(
        self, url: str, body: bytes, *, within: timedelta, headers: Mapping[str, str]
    ) -> tuple[int, Mapping[str, str]]:
        """Status and headers of the response; its body is not read. A redirect is not followed: it is a response.
        Raises ``Unfetched``."""
        limits = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_LIMIT.total_seconds())
        with _failures_named():
            async with (
                asyncio.timeout(within.total_seconds()),
                self._hop("POST", _parsed(url), headers, limits, body) as response,
            ):
                return response.status, response.headers

    @asynccontextmanager
    async def _final(
        self, url: URL, headers: Mapping[str, str], limits: aiohttp.ClientTimeout
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        for _ in range(REDIRECTS + 1):
            async with self._hop("GET", url, headers, limits) as response:
                if response.status not in _REDIRECTING:
                    yield response
                    return
                target = _target(url, response.headers.get("Location"))
            if target.origin() != url.origin():
                headers = {name: value for name, value in headers.items() if name.lower() in _FOR_ANY_SITE}
            url = target
        raise Unfetched("too_many_redirects", final=True)

    @asynccontextmanager
    async def _hop(
        self,
        method: str,
        url: URL,
        headers: Mapping[str, str],
        limits: aiohttp.ClientTimeout,
        body: bytes | None = None,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """A new connection for each request: a reused one was checked for another request."""
        connector = aiohttp.TCPConnector(
            resolver=_Checked(await self._addresses(url)),
            use_dns_cache=False,
            force_close=True,
            ssl=self._tls,
            socket_factory=self._socket,
        )
        async with (
            aiohttp.ClientSession(
                connector=connector,
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,  # an encoded body is refused, so it must not be decompressed first
                trust_env=False,
                timeout=limits,
                headers={"User-Agent": "autopost", "Accept-Encoding": "identity"},
            ) as session,
            session.request(method, url, headers=headers, data=body, allow_redirects=False) as response,
        ):
            yield response

    async def _addresses(self, url: URL) -> Sequence[str]:
        """All addresses of the name; every one of them must be allowed.

        An internal name fails like an unknown one, with the same delay, so that a sender cannot find out which internal
        names exist. A numeric address is refused at once, because it reveals nothing new.
        """
        host, loop = url.raw_host or "", asyncio.get_running_loop()
        begun = loop.time()
        try:
            found = await self.look_up(host)
        except (OSError, UnicodeError):
            found = ()
        if found and all(self._guard.admits(address, url.port or 0) for address in found):
            return found
        if found and (is_number(host) or all(map(self._guard.admits_at_some_port, found))):
            raise Unfetched("forbidden_address", final=True)
        if found:
            get_logger().warning("fetch.name_leads_inside", host=host)
        await asyncio.sleep(begun + self._unknown_after.total_seconds() - loop.time())
        raise Unfetched("dns")

    def _socket(self, info: tuple[Any, ...]) -> socket.socket:
        """Second check, on the address that is actually connected to."""
        family, kind, protocol, _, place = info
        if not self._guard.admits(place[0], place[1]) or (len(place) > 3 and place[3]):
            raise Unfetched("forbidden_address", final=True)
        return socket.socket(family, kind, protocol)


class _Checked(AbstractResolver):
    """Resolver that returns the checked addresses, so that there is no second look-up."""

    def __init__(self, addresses: Sequence[str]) -> None:
        self._addresses = addresses

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=socket.AF_INET6 if ":" in address else socket.AF_INET,
                proto=0,
                flags=socket.AI_NUMERICHOST,
            )
            for address in self._addresses
        ]

    async def close(self) -> None:
        return


def _target(url: URL, location: str | None) -> URL:
    if not location or len(location) > LONGEST_LOCATION:
        raise Unfetched("bad_redirect", final=True)
    try:
        joined = str(url.join(URL(location)))
    except ValueError:
        raise Unfetched("bad_redirect", final=True) from None
    return _parsed(joined)


def _parsed(text: str) -> URL:
    """Parsed by the parser that the connection uses, so that two parsers cannot disagree."""
    try:
        url = URL(text)
        sound = url.scheme in ("http", "https") and url.host and url.port
    except ValueError:
        sound = False
    if not sound or any(char <= " " or char in "\\\x7f" for char in text):
        raise Unfetched("invalid_url", final=True)
    if url.user is not None or url.password is not None:
        raise Unfetched("credentials_in_url", final=True)
    return url


def _refuse_encoded(response: aiohttp.ClientResponse) -> None:
    coding = response.headers.get("Content-Encoding", "identity").strip().lower()
    transfer = response.headers.get("Transfer-Encoding", "chunked").strip().lower()
    if coding not in ("", "identity") or transfer not in ("", "identity", "chunked"):
        raise Unfetched("encoded_body", final=True)


@contextmanager
def _failures_named() -> Iterator[None]:
    try:
        yield
    except aiohttp.ClientError as exc:
        raise _translated(exc) from None
    except TimeoutError:
        raise Unfetched("timeout") from None
    except OSError as exc:
        raise Unfetched(type(exc).__name__) from None


def _translated(exc: aiohttp.ClientError) -> Unfetched:
    match exc:
        case aiohttp.InvalidURL() | aiohttp.NonHttpUrlClientError():
            return Unfetched("invalid_url", final=True)
        case aiohttp.ClientConnectorCertificateError() | aiohttp.ClientSSLError():
            return Unfetched("tls")
        case aiohttp.ServerTimeoutError():
            return Unfetched("timeout")
        case aiohttp.ClientConnectorError():
            return Unfetched("connect")
        case aiohttp.ClientPayloadError() | aiohttp.ServerDisconnectedError():
            return Unfetched("cut_off")
        case aiohttp.ClientResponseError():
            return Unfetched("bad_framing")
        case _:
            return Unfetched("connect")
