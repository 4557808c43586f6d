"""Authentication and TLS of the NATS connection: user and password, certificate authority, client certificate.

A client with TLS configured never connects without TLS. The library would: it follows the INFO message of the server,
and so would send the password in clear text to a server that does not offer TLS.
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
        """INFO is the first message of the server, before we send anything."""
        if initial_connection and not info.get("tls_required"):
            raise SecureConnRequiredError
        await super()._process_info(info, initial_connection)


def servers_of(nats_url: str) -> list[str]:
    return [server.strip() for server in nats_url.split(",")]


def client_for(nats_url: str | None, access: NatsAccess) -> Client:
    return SecureClient() if _is_secure(nats_url or "", access) else Client()


def options_for(access: NatsAccess) -> dict[str, Any]:
    """The options of ``connect``. Raises ``ConfigError`` for invalid settings."""
    if problems := list(_problems(access)):
        raise ConfigError(problems)
    options: dict[str, Any] = {}
    if access.nats_user is not None and access.nats_password is not None:
        options |= {"user": access.nats_user, "password": access.nats_password.reveal()}
    if access.nats_tls_ca or access.nats_tls_cert:
        options["tls"] = _context(access)
    return options


def _is_secure(nats_url: str, access: NatsAccess) -> bool:
    """One ``tls://`` server is enough: all servers get the same credentials, so none gets them in clear text."""
    schemes = {urlsplit(server).scheme for server in servers_of(nats_url)}
    return "tls" in schemes or access.nats_tls_ca is not None or access.nats_tls_cert is not None


def _problems(access: NatsAccess) -> Iterator[str]:
    pairs = (
        ("USER", access.nats_user, "PASSWORD", access.nats_password),
        ("TLS_CERT", access.nats_tls_cert, "TLS_KEY", access.nats_tls_key),
    )
    for first, first_value, second, second_value in pairs:
        if (first_value is None) != (second_value is None):
            missing, present = (second, first) if second_value is None else (first, second)
            yield f"AUTOPOST_NATS_{missing} is not set; it is required with AUTOPOST_NATS_{present}"


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
