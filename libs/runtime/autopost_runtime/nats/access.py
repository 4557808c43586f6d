"""Who we are to the NATS server, and how we know it: user and password, a certificate authority, a certificate of ours.

A client that is told to use TLS never speaks without it. The library would: it goes by what the server says of itself,
and so would tell its password to whoever says nothing of TLS.
"""

import ssl
from collections.abc import Callable, Iterator
from typing import Any, TypeVar
from urllib.parse import urlsplit

from nats.aio.client import Client
from nats.errors import SecureConnRequiredError

from autopost_runtime.config.load import ConfigError, NatsAccess

R = TypeVar("R")


class SecureClient(Client):
    async def _process_info(self, info: dict[str, Any], initial_connection: bool = False) -> None:
        """The first thing a server says, before we say anything."""
        if initial_connection and not info.get("tls_required"):
            raise SecureConnRequiredError
        await super()._process_info(info, initial_connection)


def servers_of(nats_url: str) -> list[str]:
    return [server.strip() for server in nats_url.split(",")]


def client_for(nats_url: str | None, access: NatsAccess) -> Client:
    return SecureClient() if _is_secure(nats_url or "", access) else Client()


def options_for(access: NatsAccess) -> dict[str, Any]:
    """What ``connect`` takes; raises ``ConfigError`` for what cannot be used."""
    if problems := list(_problems(access)):
        raise ConfigError(problems)
    options: dict[str, Any] = {}
    if access.nats_user is not None and access.nats_password is not None:
        options |= {"user": access.nats_user, "password": access.nats_password.reveal()}
    if access.nats_tls_ca or access.nats_tls_cert:
        options["tls"] = _context(access)
    return options


def _is_secure(nats_url: str, access: NatsAccess) -> bool:
    """One server by ``tls://`` is enough: what one of them may hear encrypted alone, no other hears in the open."""
    schemes = {urlsplit(server).scheme for server in servers_of(nats_url)}
    return "tls" in schemes or access.nats_tls_ca is not None or access.nats_tls_cert is not None


def _problems(access: NatsAccess) -> Iterator[str]:
    pairs = (
        ("USER", access.nats_user, "PASSWORD", access.nats_password),
        ("TLS_CERT", access.nats_tls_cert, "TLS_KEY", access.nats_tls_key),
    )
    for one, given, other, needed in pairs:
        if (given is None) != (needed is None):
            missing, there = (other, one) if needed is None else (one, other)
            yield f"AUTOPOST_NATS_{missing} is not set; it is required with AUTOPOST_NATS_{there}"


def _context(access: NatsAccess) -> ssl.SSLContext:
    context = _reading("CA", lambda: ssl.create_default_context(cafile=access.nats_tls_ca))
    if access.nats_tls_cert is not None and access.nats_tls_key is not None:
        cert, key = access.nats_tls_cert, access.nats_tls_key
        _reading("CERT", lambda: context.load_cert_chain(cert, key))
    return context


def _reading(name: str, read: Callable[[], R]) -> R:
    try:
        return read()
    except (OSError, ValueError) as exc:  # SSLError is an OSError
        raise ConfigError([f"AUTOPOST_NATS_TLS_{name}: cannot be read ({exc}); expected a PEM file"]) from None
