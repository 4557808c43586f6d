"""Verify Standard Webhooks signatures.

A signature is HMAC-SHA256 over ``id.timestamp.body``. An endpoint may have two secrets, the current and the next one,
so that a secret can be rotated without a lost request. Response and run time are the same for an unknown endpoint and
for a wrong signature.

The standard does not sign the query, which changes the meaning of a request: a captured dry run could be replayed as a
post. So the id contains the query: ``msg_1?dry_run=1`` is valid only for a request with the query ``dry_run=1``.
"""

import base64
import hmac
import re
import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from uuid import UUID

from autopost_runtime.config.load import Secret
from autopost_runtime.http.endpoint_cache import TtlCache
from autopost_runtime.secrets.sealing import Label, SealingKeys, Unopenable
from autopost_runtime.telemetry import metrics
from autopost_runtime.telemetry.logs import get_logger
from msgspec import Struct

from autopost_ingest.gateway import Endpoint, Gateway, Signer

PLATFORM = "webhook"
PREFIX = "whsec_"
SHORTEST_KEY = 24
TOLERANCE = timedelta(minutes=5)
MAX_SIGNATURES = 10
MAX_SECRETS = 2
"""Current and next. A dummy key replaces a missing one, so that timing reveals nothing."""

DUMMY_KEY = bytes(32)
"""Used in place of a missing secret."""

DUMMY_LABEL = Label("", PLATFORM, "nobody")
"""Label of the sealed dummy key."""

NAMED = "webhook:"
"""Prefix of a ``webhook-id`` used as ``source_ref``, so that it cannot equal one from a body."""

_ID = re.compile(r"[!-~]{1,248}")  # with the prefix it fits into source_ref
_TIMESTAMP = re.compile(r"[0-9]{1,12}")

_signed = metrics.counter("autopost_ingress_signatures_total", "Signed requests by the matching secret.")


class InvalidSignatureHeaders(Exception):  # noqa: N818  named for what happened
    """The message is shown to the sender."""


class SignatureHeaders(Struct, frozen=True, kw_only=True):
    """The signature headers of a request, not verified yet."""

    id: str
    timestamp: str
    signatures: tuple[bytes, ...]

    @property
    def message_id(self) -> str:
        """The id without the query: a dry run and its post have the same one."""
        return self.id.partition("?")[0]

    def matches(self, key: bytes, body: bytes) -> bool:
        expected = hmac.digest(key, f"{self.id}.{self.timestamp}.".encode() + body, "sha256")
        matching = [hmac.compare_digest(expected, signature) for signature in self.signatures]
        return any(matching)


class SigningKey(Struct, frozen=True, kw_only=True):
    endpoint: Endpoint
    name: str
    secret: bytes


class Signatures:
    def __init__(self, gateway: Gateway, keys: SealingKeys | None, now: Callable[[], float] = time.time) -> None:
        self._gateway = gateway
        self._sealing = keys
        self._now = now
        self._cache: TtlCache[UUID, tuple[SigningKey, ...]] = TtlCache(self._read)
        self._stand_in = keys.seal(Secret(PREFIX + base64.b64encode(DUMMY_KEY).decode()), DUMMY_LABEL) if keys else b""

    def read_headers(self, headers: Mapping[str, str], query: str = "") -> SignatureHeaders:
        """``query`` is the raw query, empty if it has only hints. Raises ``InvalidSignatureHeaders``."""
        name, timestamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
        if not _ID.fullmatch(name) or not _TIMESTAMP.fullmatch(timestamp):
            raise InvalidSignatureHeaders("headers webhook-id, webhook-timestamp and webhook-signature are required")
        if abs(self._now() - int(timestamp)) > TOLERANCE.total_seconds():
            raise InvalidSignatureHeaders("webhook-timestamp differs from server time by more than 5 minutes")
        plain, _, signed_query = name.partition("?")
        if not plain or signed_query != query:
            raise InvalidSignatureHeaders(
                "the signature must cover the query: append ? and the query to webhook-id, as in msg_1?dry_run=1"
            )
        return SignatureHeaders(
            id=name, timestamp=timestamp, signatures=_signatures(headers.get("webhook-signature", ""))
        )

    async def keys_of(self, endpoint: str) -> tuple[SigningKey, ...]:
        try:
            return await self._cache.get(UUID(endpoint))
        except ValueError:
            return ()

    def signer(self, signature: SignatureHeaders, body: bytes, keys: tuple[SigningKey, ...]) -> Endpoint | None:
        matching = [key for key in keys if signature.matches(key.secret, body)]
        for _ in range(len(keys), MAX_SECRETS):
            signature.matches(DUMMY_KEY, body)
        if not matching:
            return None
        _signed.add(1, {"key": matching[0].name})
        return matching[0].endpoint

    async def _read(self, endpoint: UUID) -> tuple[SigningKey, ...]:
        signers = await self._gateway.read_signing_secrets(endpoint)
        found = [self._open(signer) for signer in signers]
        for _ in range(len(signers), MAX_SECRETS):
            if self._sealing is not None:
                self._reveal(self._stand_in, DUMMY_LABEL)
        return tuple(key for key in found if key is not None)

    def _open(self, signer: Signer) -> SigningKey | None:
        """``None`` and a warning in the log when the secret cannot be used."""
        endpoint = signer.endpoint
        try:
            secret = self._reveal(signer.sealed, Label(str(endpoint.workspace_id), PLATFORM, signer.auth_ref))
        except Unopenable as exc:
            get_logger().warning(
                "signing_secret.unusable",
                workspace_id=str(endpoint.workspace_id),
                auth_ref=signer.auth_ref,
                reason=str(exc),
            )
            return None
        return SigningKey(
            endpoint=endpoint, name="next" if signer.auth_ref.endswith(":next") else "current", secret=secret
        )

    def _reveal(self, sealed: bytes, label: Label) -> bytes:
        if self._sealing is None:
            raise Unopenable("sealed, but AUTOPOST_SECRETS_KEY is not set")
        text = self._sealing.open(sealed, label).reveal()
        try:
            key = base64.b64decode(text.removeprefix(PREFIX), validate=True)
        except ValueError:
            key = b""
        if not text.startswith(PREFIX) or len(key) < SHORTEST_KEY:
            raise Unopenable(f"must be {PREFIX} followed by the base64 of at least {SHORTEST_KEY} bytes")
        return key


def _signatures(header: str) -> tuple[bytes, ...]:
    """Signatures of version v1; other versions are ignored."""
    found = []
    for one in header.split(" ")[:MAX_SIGNATURES]:
        version, _, text = one.partition(",")
        try:
            signature = base64.b64decode(text, validate=True) if version == "v1" else b""
        except ValueError:
            continue
        if signature:
            found.append(signature)
    return tuple(found)
