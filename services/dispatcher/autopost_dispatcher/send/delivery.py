"""Send one delivery part by part, each in its slot and recorded before the next."""

import time
from collections.abc import Awaitable, Mapping, Sequence
from datetime import timedelta
from functools import cache
from typing import Protocol, TypeVar

import msgspec
from autopost_adapters.base import AcceptedPart, Adapter, Held, Material, MediaMissing, Target
from autopost_contracts.outcomes import LONGEST_RETRY_AFTER, Category, Failed, Outcome, Scope, Sent
from autopost_contracts.plan import MediaPart, Part, Plan, PlannedMedia
from autopost_runtime.lifecycle.backoff import Backoff
from autopost_runtime.lifecycle.pace import FINE
from autopost_runtime.postgres.pool import is_retryable
from autopost_runtime.secrets.credentials import Identity
from autopost_runtime.telemetry import metrics
from autopost_runtime.telemetry.logs import get_logger

from autopost_dispatcher.claim.claim import SendJob
from autopost_dispatcher.gateway import Claim
from autopost_dispatcher.send.bots import Bots
from autopost_dispatcher.send.calls import Calls
from autopost_dispatcher.send.end_delivery import EndDelivery, Released
from autopost_dispatcher.send.slots import Slots
from autopost_dispatcher.send.uploads import UploadCache

Answer = TypeVar("Answer", bound=AcceptedPart | Failed | None)

provider_seconds = metrics.histogram("autopost_provider_call_seconds", "How long provider calls took.")


class Progress(Protocol):
    async def record_progress(self, claim: Claim, part: int, provider_ids: tuple[str, ...]) -> bool: ...


class SendContext(msgspec.Struct, frozen=True, kw_only=True):
    """What all deliveries of a process share."""

    progress: Progress
    slots: Slots
    uploads: UploadCache
    bots: Bots
    calls: Calls
    call_time: float
    """Seconds that must be left of the lease before a call."""
    upload_time: float
    """The same before a call with media."""


class Delivery:
    def __init__(
        self, context: SendContext, adapter: Adapter, plan: Plan, target: Target, job: SendJob, identity: Identity
    ) -> None:
        self._context = context
        self._adapter = adapter
        self._plan = plan
        self._target = target
        self._job = job
        self._identity = identity
        self._bot_id = context.bots.known(identity)
        self._called = False

    async def run(self) -> Outcome | Released | None:
        """``None`` when the claim is no longer valid: there is nothing to commit."""
        claim, parts = self._job.claim, self._plan.parts
        ids = list(claim.acknowledged)
        try:
            await self._bot()
            for index in range(claim.progress, len(parts)):
                found = await self._find_part(parts[index]) if claim.verify and index == claim.progress else None
                accepted = found or await self._send_part(parts[index])
                ids.append(accepted.provider_ids)
                if len(parts) > 1:
                    await self._record(index, accepted)
                    self._job.in_doubt = False
        except EndDelivery as over:
            return over.outcome
        return Sent(provider_message_id=ids[self._plan.main_part][0], parts=tuple(ids))

    async def _record(self, index: int, accepted: AcceptedPart) -> None:
        """Record an accepted part, or it would be sent again. Retries while the lease is valid.

        If the database refuses it, the delivery is held for an operator, for the same reason.
        """
        claim, backoff = self._job.claim, Backoff()
        while self._job.lease.left() > 0:
            try:
                if await self._context.progress.record_progress(claim, index, accepted.provider_ids):
                    return
                break
            except Exception as exc:
                if not is_retryable(exc):
                    get_logger().error("progress.refused", exc_info=exc, delivery_id=str(claim.delivery_id))
                    message = (
                        f"the platform accepted part {index + 1}, but it could not be recorded ({type(exc).__name__})"
                    )
                    raise EndDelivery(
                        Failed.transient(Scope.DELIVERY, "unrecorded", message, ambiguous=True, hold=True)
                    ) from None
                get_logger().warning("progress.unknown", error=type(exc).__name__, delivery_id=str(claim.delivery_id))
            await backoff.wait()
        raise EndDelivery(None)

    async def _find_part(self, part: Part) -> AcceptedPart | None:
        """The previous attempt may have arrived: nothing is sent until the platform shows that it has not."""
        if not self._adapter.can_find:
            message = f"{self._adapter.platform} has no way to check whether the message arrived"
            raise EndDelivery(Failed.transient(Scope.DELIVERY, "cannot_verify", message, ambiguous=True, hold=True))
        await self._next_slot(group_only=True)
        claim = self._job.claim
        known = {one for part_ids in claim.acknowledged for one in part_ids}
        number = self._context.calls.begin(claim)
        found = await self._call(number, self._adapter.find(part, self._target, claim.created_at, known))
        if isinstance(found, Failed):
            raise EndDelivery(msgspec.structs.replace(found, category=Category.TRANSIENT, ambiguous=True))
        return found

    async def _send_part(self, part: Part) -> AcceptedPart:
        """Send a part and return its message ids. An expired media id is replaced once."""
        media = await self._materials(part) if isinstance(part, MediaPart) else ()
        answer = await self._send(part, media)
        if isinstance(answer, Failed) and answer.code == "media_expired":
            stale = _stale(part, media)
            if not stale:
                raise EndDelivery(msgspec.structs.replace(answer, category=Category.PERMANENT))
            await self._context.uploads.forget(self._job.claim, await self._bot(), stale)
            media = await self._materials(part)
            answer = await self._send(part, media)
        if isinstance(answer, Failed):
            raise EndDelivery(answer)
        if answer.held:
            await self._keep(part, media, answer.held)
        return answer

    async def _send(self, part: Part, media: Sequence[Material]) -> AcceptedPart | Failed:
        """Send; retry after a pause for the codes that the adapter lists in ``patience``."""
        claim, nth, has_bytes = self._job.claim, 0, bool(media) and any(not isinstance(one, str) for one in media)
        while True:
            if not self._goes_now(has_bytes=has_bytes):
                await self._next_slot(has_bytes=has_bytes)
            started = time.monotonic()
            self._job.in_doubt = True
            number = self._context.calls.begin(claim, has_bytes=has_bytes)
            answer = await self._call(number, self._adapter.send(part, self._target, media))
            took = time.monotonic() - started
            if has_bytes and claim.channel.pace >= FINE:
                await self._context.slots.uploaded(claim)
            if not isinstance(answer, Failed):
                _seconds(self._adapter.platform, "accepted").record(took)
                return answer
            self._job.in_doubt = answer.ambiguous
            _seconds(self._adapter.platform, answer.code).record(took)
            self._apply_retry_after(answer)
            waits = self._adapter.patience.get(answer.code, ())
            if nth == len(waits):
                return answer
            await self._wait(waits[nth].total_seconds())
            nth += 1

    async def _call(self, number: int, call: Awaitable[Answer]) -> Answer:
        calls, claim = self._context.calls, self._job.claim
        try:
            answer = await call
        except BaseException:
            calls.forget(claim, number)
            raise
        calls.end(claim, number, answer)
        return answer

    def _apply_retry_after(self, failed: Failed) -> None:
        if failed.scope == Scope.PLATFORM and failed.retry_after_ms is not None:
            asked = timedelta(milliseconds=failed.retry_after_ms)
            self._context.slots.cool(self._job.claim, min(asked, LONGEST_RETRY_AFTER))

    async def _materials(self, part: Part) -> list[Material]:
        items = part.media if isinstance(part, MediaPart) else ()
        if not any(item.blob_ref for item in items):
            return [_own_id(item) for item in items]
        bot = await self._bot()
        try:
            found = await self._context.uploads.materials(self._job.claim, bot, items, self._wait)
        except MediaMissing as exc:
            raise EndDelivery(
                Failed.permanent(Scope.DELIVERY, "media_missing_origin", f"the stored media {exc} no longer exists")
            ) from None
        if self._adapter.uploads_apart:
            found = await self._upload(found, items, bot)
        return [found[item.blob_ref] if item.blob_ref else _own_id(item) for item in items]

    async def _upload(
        self, found: Mapping[str, Material], items: Sequence[PlannedMedia], bot: str
    ) -> Mapping[str, Material]:
        ids = dict(found)
        for item in items:
            source = ids.get(item.blob_ref or "")
            if item.blob_ref is None or source is None or isinstance(source, str):
                continue
            await self._next_slot(group_only=True, has_bytes=True)
            held = await self._adapter.upload(item, source, self._target)
            if isinstance(held, Failed):
                self._apply_retry_after(held)
                raise EndDelivery(held)
            await self._context.uploads.keep(self._job.claim, bot, {item.blob_ref: (item.type, held)})
            ids[item.blob_ref] = held.provider_id
        return ids

    async def _keep(self, part: Part, media: Sequence[Material], held: Sequence[Held | None]) -> None:
        """Keep the ids of media that were uploaded with the message."""
        items = part.media if isinstance(part, MediaPart) else ()
        brought = {
            item.blob_ref: (item.type, one)
            for item, material, one in zip(items, media, held, strict=False)
            if item.blob_ref and one and not isinstance(material, str)
        }
        if brought:
            await self._context.uploads.keep(self._job.claim, await self._bot(), brought)

    async def _bot(self) -> str:
        """Identified before the first call: a failure of this request after a call would hide what was sent."""
        if self._bot_id is not None:
            return self._bot_id
        found = await self._context.bots.identity(
            self._adapter, self._job.claim, self._identity, lambda: self._next_slot(group_only=True)
        )
        if isinstance(found, Failed | Released):
            raise EndDelivery(found)
        self._bot_id = found
        return found

    def _goes_now(self, *, has_bytes: bool) -> bool:
        """Whether this is the first call and its slot has come, so that no wait is needed."""
        context = self._context
        if self._called or not context.slots.is_now(self._job, context.upload_time if has_bytes else context.call_time):
            return False
        self._called = True
        return True

    def _next_slot(self, *, group_only: bool = False, has_bytes: bool = False) -> Awaitable[None]:
        context = self._context
        call_time = context.upload_time if has_bytes else context.call_time
        if self._called or group_only:
            return context.slots.next(self._job, call_time, group_only=group_only)
        self._called = True
        return context.slots.first(self._job, call_time)

    async def _wait(self, seconds: float) -> None:
        await self._context.slots.pause(seconds)
        self._context.slots.check(self._job)


@cache
def _seconds(platform: str, outcome: str) -> metrics.Series:
    return provider_seconds.of({"platform": platform, "outcome": outcome})


def _own_id(item: PlannedMedia) -> str:
    return item.file_id or item.attachment_token or item.url or ""


def _stale(part: Part, media: Sequence[Material]) -> Mapping[str, str]:
    """Our own media ids, by blob. An id that came with the post cannot be replaced."""
    items = part.media if isinstance(part, MediaPart) else ()
    pairs = zip(items, media, strict=True)
    return {item.blob_ref: one for item, one in pairs if item.blob_ref and isinstance(one, str)}
