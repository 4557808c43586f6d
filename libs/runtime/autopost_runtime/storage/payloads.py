"""Raw payloads: a platform's response to a failed call, or a refused request body.

They are stored in S3 below ``<workspace>/payloads/<yyyy>/<mm>/<dd>/``; the ``payload_ref`` of an event refers to one.
Secrets are masked before writing; phone numbers and e-mail addresses are not, so reading one requires a reason.

Best effort: with a slow or unavailable store the payload is lost, never the delivery or the response to the sender.
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
"""The headers that are stored; of others not even the name is stored."""

payloads_total = metrics.counter("autopost_payloads_total", "Raw payloads by kind and result.")


class PayloadWriter(Protocol):
    async def put(
        self, key: str, body: bytes, content_type: str, *, encryption: Literal["AES256"] | None = None
    ) -> None: ...


class Payload(msgspec.Struct, frozen=True, kw_only=True):
    """``body`` is ``None`` when there was no response, or nothing was read."""

    kind: Kind
    about: Mapping[str, Any]
    """Ids and codes of its subject; no secrets and no foreign text."""
    status: int | None = None
    headers: Mapping[str, str] = {}
    body: str | None = None
    size: int = 0
    """The size of the whole body in bytes, as far as it was read."""
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
        self._paused_until = float("-inf")

    async def keep(
        self,
        workspace: UUID,
        payload: Payload,
        *,
        secrets: Collection[str] = (),
        within: timedelta = PATIENCE,
    ) -> str | None:
        """Returns the reference for the event once the object is stored, else ``None``. Never raises.

        ``secrets`` are the known secrets of the request; they are masked whatever they look like.
        """
        if self._store is None:
            return None
        if self._now() < self._paused_until:
            payloads_total.add(1, {"kind": payload.kind, "stored": False})
            return None
        at = datetime.now(UTC)
        key = f"{workspace}/payloads/{at:%Y/%m/%d}/{new_id()}"
        try:
            async with asyncio.timeout(within.total_seconds()), self._places:
                document = _document(payload, self._service, at, secrets)
                await self._store.put(key, document, "application/json", encryption=self._encryption)
        except Exception as exc:
            self._paused_until = self._now() + REST.total_seconds()
            payloads_total.add(1, {"kind": payload.kind, "stored": False})
            get_logger().warning("payload.not_kept", error=type(exc).__name__, kind=payload.kind)
            return None
        payloads_total.add(1, {"kind": payload.kind, "stored": True})
        return key


def harmless(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items() if name.lower() in HARMLESS}


def readable(body: bytes, largest: int = LARGEST) -> str:
    """The beginning of a body, up to the limit; a byte that is not text is shown as a four-character escape."""
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
    """Cut after the secrets are masked, so that no partial secret remains at the cut."""
    encoded = clean.encode()
    most = payload.largest + MARGIN
    whole = encoded[:-MARGIN] if payload.size > most or len(payload.body or "") >= most else encoded
    kept = whole[: payload.largest]
    return kept.decode("utf-8", "ignore"), len(kept) < len(encoded)


def _clean(text: str, secrets: Collection[str]) -> str:
    for secret in secrets:
        text = mask_secret(text, secret)
    return redact_secrets(text)
