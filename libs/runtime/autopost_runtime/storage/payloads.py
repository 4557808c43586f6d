"""Raw payloads: what a platform really answered when it did not go well, and what a sender sent that was refused.

They lie in S3 below ``<workspace>/payloads/<yyyy>/<mm>/<dd>/``, and an event names one as its ``payload_ref``. Secrets
are taken out before anything is written; phone numbers and addresses stay, which is why reading one takes a reason.

Best effort: a store that is away or slow costs the payload, never the delivery or the answer that it belongs to.
"""

import asyncio
import time
from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, Protocol
from uuid import UUID

import msgspec

from autopost_runtime.postgres.identity import new_id
from autopost_runtime.secrets.redaction import mask_secret, redact_secrets
from autopost_runtime.telemetry import metrics
from autopost_runtime.telemetry.logs import get_logger

LARGEST = 256 * 1024
"""Stored bytes of a body."""
MARGIN = 1024
"""Further bytes are only searched, so that a secret at the cut is found."""
PATIENCE = timedelta(seconds=2)
HURRIED = timedelta(milliseconds=500)
"""Time limit when a sender waits."""
REST = timedelta(seconds=5)
"""Pause after a failed put, so that not every caller waits for the same store."""
AT_ONCE = 16

Kind = Literal["provider_answer", "refused_input"]
Encryption = Literal["off", "AES256"]

HARMLESS = frozenset(
    {"allow", "cf-ray", "content-encoding", "content-length", "content-type", "date", "retry-after", "server"}
    | {"transfer-encoding", "user-agent", "via", "x-request-id"}
)
"""Stored headers; of all others not even the name is stored."""

payloads_total = metrics.counter("autopost_payloads_total", "Raw payloads by kind and result.")


class PayloadWriter(Protocol):
    async def put(
        self, key: str, body: bytes, content_type: str, *, encryption: Literal["AES256"] | None = None
    ) -> None: ...


class Payload(msgspec.Struct, frozen=True, kw_only=True):
    """``body`` is ``None`` when there was none: no answer came, or nothing was read."""

    kind: Kind
    about: Mapping[str, Any]
    """What it belongs to: ids, codes; no secret, no text of others."""
    status: int | None = None
    headers: Mapping[str, str] = {}
    body: str | None = None
    size: int = 0
    """Of the whole body, in bytes, as far as it was read."""
    largest: int = LARGEST


class Payloads:
    """Without a store nothing is stored."""

    def __init__(
        self,
        store: PayloadWriter | None,
        service: str,
        *,
        encryption: Encryption = "off",
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._service = service
        self._encryption: Literal["AES256"] | None = None if encryption == "off" else encryption
        self._places = asyncio.Semaphore(AT_ONCE)
        self._now = now
        self._rests_until = float("-inf")

    async def keep(
        self,
        workspace: UUID,
        payload: Payload,
        *,
        secrets: Collection[str] = (),
        within: timedelta = PATIENCE,
    ) -> str | None:
        """The reference for the event, once the object is there; ``None`` when nothing was kept, which never raises.

        ``secrets`` are those that were part of the exchange: they go whatever they look like.
        """
        if self._store is None:
            return None
        if self._now() < self._rests_until:
            payloads_total.add(1, {"kind": payload.kind, "stored": False})
            return None
        at = datetime.now(UTC)
        key = f"{workspace}/payloads/{at:%Y/%m/%d}/{new_id()}"
        try:
            async with asyncio.timeout(within.total_seconds()), self._places:
                document = _document(payload, self._service, at, secrets)
                await self._store.put(key, document, "application/json", encryption=self._encryption)
        except Exception as exc:
            self._rests_until = self._now() + REST.total_seconds()
            payloads_total.add(1, {"kind": payload.kind, "stored": False})
            get_logger().warning("payload.not_kept", error=type(exc).__name__, kind=payload.kind)
            return None
        payloads_total.add(1, {"kind": payload.kind, "stored": True})
        return key


def harmless(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items() if name.lower() in HARMLESS}


def readable(body: bytes, largest: int = LARGEST) -> str:
    """As much of a body as a payload takes; bytes that are no text stay recognisable, and become four characters."""
    return body[: largest + MARGIN].decode("utf-8", "backslashreplace")[: largest + MARGIN]


def _document(payload: Payload, service: str, at: datetime, secrets: Collection[str]) -> bytes:
    body, is_cut = (None, False) if payload.body is None else _cut(_clean(payload.body, secrets), payload)
    return msgspec.json.encode(
        {
            "at": at,
            "service": service,
            "kind": payload.kind,
            "about": payload.about,
            "status": payload.status,
            "headers": {name: _clean(value, secrets) for name, value in harmless(payload.headers).items()},
            "body": body,
            "cut": f"truncated; the whole body has {payload.size} bytes" if is_cut else None,
        }
    )


def _cut(clean: str, payload: Payload) -> tuple[str, bool]:
    """Only after the secrets were taken out: no half of one stays where the body was cut."""
    encoded = clean.encode()
    most = payload.largest + MARGIN
    whole = encoded[:-MARGIN] if payload.size > most or len(payload.body or "") >= most else encoded
    kept = whole[: payload.largest]
    return kept.decode("utf-8", "ignore"), len(kept) < len(encoded)


def _clean(text: str, secrets: Collection[str]) -> str:
    for secret in secrets:
        text = mask_secret(text, secret)
    return redact_secrets(text)
