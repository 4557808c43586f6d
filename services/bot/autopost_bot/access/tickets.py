"""Tickets: read access to one chat for a browser, whose EventSource cannot send a header.

A ticket needs no table: any replica verifies it with a key derived from the secret of the endpoint. It ends with its
time, with the endpoint and with the secret. It is part of a URL, so it never gives more than reading one chat.
"""

import base64
import hmac
from datetime import UTC, datetime, timedelta
from uuid import UUID

from autopost_contracts.ids import EndpointId, chat_token
from msgspec import Struct

from autopost_bot.gateway import TicketEndpoint

LIFETIME = timedelta(hours=12)
LONGEST = 400
_VERSION = "v1"


class Claims(Struct, frozen=True, kw_only=True):
    """What a ticket says, not verified yet."""

    endpoint_id: EndpointId
    chat: str
    expiry: int
    mac: str


def make_ticket(endpoint: TicketEndpoint, chat_id: str, now: datetime) -> tuple[str, datetime]:
    """The ticket and when it expires."""
    expires = (now + LIFETIME).replace(microsecond=0)
    chat = chat_token(endpoint.workspace_id, chat_id)
    mac = _mac(endpoint.ticket_key, endpoint.endpoint_id, chat, int(expires.timestamp()))
    text = f"{_VERSION}.{endpoint.endpoint_id}.{chat}.{int(expires.timestamp())}.{mac}"
    return base64.urlsafe_b64encode(text.encode()).rstrip(b"=").decode(), expires


def read_ticket(ticket: str) -> Claims | None:
    if len(ticket) > LONGEST:
        return None
    try:
        text = base64.b64decode(ticket + "=" * (-len(ticket) % 4), altchars=b"-_", validate=True).decode()
        version, endpoint, chat, expiry, mac = text.split(".")
        claims = Claims(endpoint_id=EndpointId(UUID(endpoint)), chat=chat, expiry=int(expiry), mac=mac)
    except ValueError:
        return None
    return claims if version == _VERSION else None


def is_valid(claims: Claims, endpoint: TicketEndpoint, chat_id: str, now: datetime) -> bool:
    expected = _mac(endpoint.ticket_key, endpoint.endpoint_id, claims.chat, claims.expiry)
    return (
        hmac.compare_digest(expected.encode(), claims.mac.encode())
        and claims.endpoint_id == endpoint.endpoint_id
        and claims.chat == chat_token(endpoint.workspace_id, chat_id)
        and now.timestamp() < claims.expiry
    )


def utc_now() -> datetime:
    return datetime.now(UTC)


def _mac(key: bytes, endpoint: EndpointId, chat: str, expiry: int) -> str:
    return hmac.digest(key, f"{_VERSION}.{endpoint}.{chat}.{expiry}".encode(), "sha256").hex()
