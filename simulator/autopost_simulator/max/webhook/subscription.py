"""A webhook subscription of a bot and its pending updates."""

import asyncio
import heapq
import ipaddress
import re
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import msgspec

from autopost_simulator.max.events import UPDATE_TYPES, Update
from autopost_simulator.max.refusal import payload

_SECRET = re.compile(r"[A-Za-z0-9_-]{5,256}")


class SubscriptionBody(msgspec.Struct, frozen=True):
    url: str
    update_types: list[str] | None = None
    secret: str | None = None


@dataclass(slots=True, kw_only=True, order=True)
class WebhookDelivery:
    """An update to deliver; ``attempt`` counts from 1, ``waited`` is the backoff in unscaled seconds."""

    due: float
    number: int
    update: Update = field(compare=False)
    attempt: int = field(default=1, compare=False)
    waited: float = field(default=0.0, compare=False)


@dataclass(slots=True, kw_only=True)
class Subscription:
    body: SubscriptionBody
    time: int
    pending: list[WebhookDelivery] = field(default_factory=list)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    failing_since: float | None = None

    @property
    def url(self) -> str:
        return self.body.url

    def wants(self, update: Update) -> bool:
        return not self.body.update_types or update["update_type"] in self.body.update_types

    def push(self, delivery: WebhookDelivery) -> None:
        heapq.heappush(self.pending, delivery)
        self.changed.set()

    def describe(self) -> dict[str, Any]:
        return {"url": self.url, "time": self.time, "update_types": self.body.update_types}


def read_subscription(raw: bytes) -> SubscriptionBody:
    try:
        body = msgspec.json.decode(raw or b"{}", type=SubscriptionBody)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise payload(str(error)) from None
    if body.secret is not None and not _SECRET.fullmatch(body.secret):
        raise payload("secret: must be 5 to 256 of A-Z, a-z, 0-9, _ and -")
    unknown = [name for name in body.update_types or [] if name not in UPDATE_TYPES]
    if unknown:
        raise payload(f"update_types: `{unknown[0]}` is unknown")
    return body


def why_unacceptable(url: str) -> str | None:
    """MAX allows only HTTPS on port 443; for loopback addresses everything is allowed."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return "url: is not an address"
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return "url: is not an address"
    if is_loopback(parts.hostname):
        return None
    if parts.scheme != "https":
        return "url: must start with https://"
    return None if port is None else "url: the port must be 443 and is not written"


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
