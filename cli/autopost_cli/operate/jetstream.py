"""A connection of a command to NATS."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any
from urllib.parse import urlsplit

import nats.errors
from autopost_runtime.config.load import ConfigError, NatsAccess, load
from autopost_runtime.nats.access import client_for, options_for, servers_of
from nats.aio.client import Client
from nats.js import JetStreamContext

CONNECT_LIMIT = 5.0


class UnreadableError(Exception):
    """The stream cannot be read; the text is for the user."""


@asynccontextmanager
async def connected(nats_url: str) -> AsyncIterator[JetStreamContext]:
    """Raises ``UnreadableError`` with the name of the server, never with credentials from its URL."""
    try:
        access = load(NatsAccess)
        options = options_for(access)
    except ConfigError as wrong:
        raise UnreadableError(str(wrong)) from None
    client = client_for(nats_url, access)
    try:
        await _connect(client, nats_url, options)
        yield client.jetstream(timeout=CONNECT_LIMIT)
    finally:
        with suppress(Exception):
            await client.close()


async def _connect(client: Client, nats_url: str, options: dict[str, Any]) -> None:
    if nats_url == "off":
        raise UnreadableError(
            "AUTOPOST_NATS_URL is off, but the audit stream is in NATS; set it to the URL of a NATS server"
        )
    places = ", ".join(urlsplit(server).netloc.rpartition("@")[2] for server in servers_of(nats_url))
    refused = False

    async def note(exc: Exception) -> None:
        nonlocal refused
        refused = refused or "authorization" in str(exc).lower()

    connecting = client.connect(
        servers_of(nats_url),
        **options,
        name="autopost-events",
        inbox_prefix="_INBOX_cli",
        error_cb=note,
        max_reconnect_attempts=-1,
    )
    try:
        await asyncio.wait_for(connecting, CONNECT_LIMIT)
    except (nats.errors.Error, OSError, ValueError) as exc:  # TimeoutError is one
        what = "rejected the credentials" if refused else f"did not answer ({type(exc).__name__})"
        raise UnreadableError(f"NATS at {places} {what}; check AUTOPOST_NATS_URL") from None
