"""Standard Webhooks: who signed a request, if anybody did.

A signature is HMAC-SHA256 over ``id.timestamp.body``. An endpoint may have two secrets, its own and the next one, so
that senders change over without a lost request. Nothing here tells an unknown endpoint from a wrong signature: neither
the answer nor, as far as we can help it, the time it takes.
"""

import base64
import hmac
import re
import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from uuid import UUID

from autopost_runtime import metrics
from autopost_runtime.logs import get_logger
from autopost_runtime.sealing import Label, SealingKeys, Unopenable
from msgspec import Struct

from autopost_ingest.doors import Memory
from autopost_ingest.gateway import Endpoint, Gateway, Signer

PLATFORM = "webhook"
PREFIX = "whsec_"
SHORTEST_KEY = 24
TOLERANCE = timedelta(minutes=5)
MOST_SIGNATURES = 10

NOBODY = bytes(32)
"""Compared with when there is no such endpoint, so that this takes as long."""

NAMED = "webhook:"
"""Before a ``webhook-id`` that is the ``source_ref`` of its post, since bodies name theirs as they like."""

_ID = re.compile(r"[!-~]{1,248}")  # what a source_ref may have beside that
_TIMESTAMP = re.compile(r"[0-9]{1,12}")

_signed = metrics.counter("autopost_ingress_signatures_total", "Signed requests, by the secret that fitted.")


class Unsigned(Exception):  # noqa: N818  named for what happened
    """The headers alone show it; the message may be told."""


class Claim(Struct, frozen=True, kw_only=True):
    """What the headers of a signed request say, not believed yet."""

    id: str
    timestamp: str
    signatures: tuple[bytes, ...]

    def fits(self, key: bytes, body: bytes) -> bool:
        told = hmac.digest(key, f"{self.id}.{self.timestamp}.".encode() + body, "sha256")
        fitting = [hmac.compare_digest(told, signature) for signature in self.signatures]
        return any(fitting)


class Key(Struct, frozen=True, kw_only=True):
    endpoint: Endpoint
    name: str
    secret: bytes


class Signatures:
    def __init__(self, gateway: Gateway, keys: SealingKeys | None, now: Callable[[], float] = time.time) -> None:
        self._gateway = gateway
        self._sealing = keys
        self._now = now
        self._memory: Memory[UUID, tuple[Key, ...]] = Memory(self._read)

    def claim(self, headers: Mapping[str, str]) -> Claim:
        """Raises ``Unsigned``."""
        name, timestamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
        if not _ID.fullmatch(name) or not _TIMESTAMP.fullmatch(timestamp):
            raise Unsigned("expected the headers webhook-id, webhook-timestamp and webhook-signature")
        if abs(self._now() - int(timestamp)) > TOLERANCE.total_seconds():
            raise Unsigned("webhook-timestamp is more than five minutes from now")
        return Claim(id=name, timestamp=timestamp, signatures=_signatures(headers.get("webhook-signature", "")))

    async def keys_of(self, endpoint: str) -> tuple[Key, ...]:
        try:
            return await self._memory.get(UUID(endpoint))
        except ValueError:
            return ()

    def signer(self, claim: Claim, body: bytes, keys: tuple[Key, ...]) -> Endpoint | None:
        fitting = [key for key in keys if claim.fits(key.secret, body)]
        if not keys:
            claim.fits(NOBODY, body)
        if not fitting:
            return None
        _signed.add(1, {"key": fitting[0].name})
        return fitting[0].endpoint

    async def _read(self, endpoint: UUID) -> tuple[Key, ...]:
        found = [self._open(signer) for signer in await self._gateway.read_signing_secrets(endpoint)]
        return tuple(key for key in found if key is not None)

    def _open(self, signer: Signer) -> Key | None:
        """``None``, with a line in the log, when the secret cannot be used."""
        endpoint = signer.endpoint
        try:
            secret = self._reveal(signer, Label(str(endpoint.workspace_id), PLATFORM, signer.auth_ref))
        except Unopenable as exc:
            get_logger().warning(
                "signing_secret.unusable",
                workspace_id=str(endpoint.workspace_id),
                auth_ref=signer.auth_ref,
                reason=str(exc),
            )
            return None
        return Key(endpoint=endpoint, name="next" if signer.auth_ref.endswith(":next") else "current", secret=secret)

    def _reveal(self, signer: Signer, label: Label) -> bytes:
        if self._sealing is None:
            raise Unopenable("it is sealed and AUTOPOST_SECRETS_KEY is not set")
        text = self._sealing.open(signer.sealed, label).reveal()
        try:
            key = base64.b64decode(text.removeprefix(PREFIX), validate=True)
        except ValueError:
            key = b""
        if not text.startswith(PREFIX) or len(key) < SHORTEST_KEY:
            raise Unopenable(f"expected {PREFIX} and the base64 of {SHORTEST_KEY} bytes or more")
        return key


def _signatures(header: str) -> tuple[bytes, ...]:
    """Those of version 1; a sender may add others."""
    found = []
    for one in header.split(" ")[:MOST_SIGNATURES]:
        version, _, text = one.partition(",")
        try:
            signature = base64.b64decode(text, validate=True) if version == "v1" else b""
        except ValueError:
            continue
        if signature:
            found.append(signature)
    return tuple(found)
