"""One delivery on its way: part by part, each in its slot, each recorded before the next one goes out."""

import time
from collections.abc import Awaitable, Mapping, Sequence
from datetime import timedelta
from functools import cache
from typing import Protocol

import msgspec
from autopost_adapters.base import Accepted, Adapter, Held, Material, MediaMissing, Target
from autopost_contracts.outcomes import Category, Failed, Outcome, Scope, Sent
from autopost_contracts.plan import MediaPart, Part, Plan, PlannedMedia
from autopost_runtime import metrics
from autopost_runtime.backoff import Backoff
from autopost_runtime.logs import get_logger
from autopost_runtime.postgres import is_retryable

from autopost_dispatcher.bots import Bots
from autopost_dispatcher.claim import Job
from autopost_dispatcher.gateway import Claim
from autopost_dispatcher.media import Shelf
from autopost_dispatcher.over import Over, Released
from autopost_dispatcher.slots import Slots

provider_seconds = metrics.histogram("autopost_provider_call_seconds", "How long provider calls took.")


class Progress(Protocol):
    async def record_progress(self, claim: Claim, part: int, provider_ids: tuple[str, ...]) -> bool: ...


class Desk(msgspec.Struct, frozen=True, kw_only=True):
    """What all flights of a process share."""

    progress: Progress
    slots: Slots
    shelf: Shelf
    bots: Bots
    call_time: float
    """Seconds that must be left of a lease before a call, and before one that carries media."""
    upload_time: float


class Flight:
    def __init__(
        self, desk: Desk, adapter: Adapter, plan: Plan, target: Target, job: Job, bot_id: str | None = None
    ) -> None:
        self._desk = desk
        self._adapter = adapter
        self._plan = plan
        self._target = target
        self._job = job
        self._bot_id = bot_id
        self._called = False

    async def run(self) -> Outcome | Released | None:
        """``None`` when the claim turned out to be somebody else's by now: there is nothing to commit."""
        claim, parts = self._job.claim, self._plan.parts
        ids = list(claim.acknowledged)
        try:
            for index in range(claim.progress, len(parts)):
                found = await self._look_for(parts[index]) if claim.verify and index == claim.progress else None
                accepted = found or await self._bring(parts[index])
                ids.append(accepted.provider_ids)
                if len(parts) > 1:
                    await self._record(index, accepted)
        except Over as over:
            return over.outcome
        return Sent(provider_message_id=ids[self._plan.main_part][0], parts=tuple(ids))

    async def _record(self, index: int, accepted: Accepted) -> None:
        """The platform has it: what is not recorded would be sent again. So this insists while the claim is ours."""
        claim, backoff = self._job.claim, Backoff()
        while self._job.lease.left() > 0:
            try:
                if await self._desk.progress.record_progress(claim, index, accepted.provider_ids):
                    return
                break
            except Exception as exc:
                if not is_retryable(exc):
                    raise
                get_logger().warning("progress.unknown", error=type(exc).__name__, delivery_id=str(claim.delivery_id))
            await backoff.wait()
        raise Over(None)

    async def _look_for(self, part: Part) -> Accepted | None:
        """The attempt before may have arrived. While the platform does not say that it has not, nothing is sent."""
        if not self._adapter.can_find:
            message = f"{self._adapter.platform} cannot be asked whether it arrived"
            raise Over(Failed.transient(Scope.DELIVERY, "cannot_verify", message, ambiguous=True, hold=True))
        await self._next_slot(beside=True)
        claim = self._job.claim
        known = {one for part_ids in claim.acknowledged for one in part_ids}
        found = await self._adapter.find(part, self._target, claim.created_at, known)
        if isinstance(found, Failed):
            raise Over(msgspec.structs.replace(found, category=Category.TRANSIENT, ambiguous=True))
        return found

    async def _bring(self, part: Part) -> Accepted:
        """One acknowledged part. An id that the platform has forgotten is replaced once."""
        media = await self._materials(part) if isinstance(part, MediaPart) else ()
        answer = await self._send(part, media)
        if isinstance(answer, Failed) and answer.code == "media_expired":
            stale = _stale(part, media)
            if not stale:
                raise Over(msgspec.structs.replace(answer, category=Category.PERMANENT))
            await self._desk.shelf.forget(self._job.claim, await self._bot(), stale)
            media = await self._materials(part)
            answer = await self._send(part, media)
        if isinstance(answer, Failed):
            raise Over(answer)
        if answer.held:
            await self._keep(part, media, answer.held)
        return answer

    async def _send(self, part: Part, media: Sequence[Material]) -> Accepted | Failed:
        """Again, after a while, as long as the platform only asks for patience."""
        nth, has_bytes = 0, bool(media) and any(not isinstance(one, str) for one in media)
        while True:
            if not self._goes_now(has_bytes=has_bytes):
                await self._next_slot(has_bytes=has_bytes)
            started = time.monotonic()
            answer = await self._adapter.send(part, self._target, media)
            took = time.monotonic() - started
            if not isinstance(answer, Failed):
                _seconds(self._adapter.platform, "accepted").record(took)
                return answer
            _seconds(self._adapter.platform, answer.code).record(took)
            self._heed(answer)
            waits = self._adapter.patience.get(answer.code, ())
            if nth == len(waits):
                return answer
            await self._wait(waits[nth].total_seconds())
            nth += 1

    def _heed(self, failed: Failed) -> None:
        if failed.scope == Scope.PLATFORM and failed.retry_after_ms is not None:
            self._desk.slots.cool(self._job.claim, timedelta(milliseconds=failed.retry_after_ms))

    async def _materials(self, part: Part) -> list[Material]:
        items = part.media if isinstance(part, MediaPart) else ()
        if not any(item.blob_ref for item in items):
            return [_own_id(item) for item in items]
        bot = await self._bot()
        try:
            found = await self._desk.shelf.materials(self._job.claim, bot, items, self._wait)
        except MediaMissing as exc:
            raise Over(Failed.permanent(Scope.DELIVERY, "media_missing_origin", f"{exc} is gone")) from None
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
            await self._next_slot(beside=True, has_bytes=True)
            held = await self._adapter.upload(item, source, self._target)
            if isinstance(held, Failed):
                self._heed(held)
                raise Over(held)
            await self._desk.shelf.keep(self._job.claim, bot, {item.blob_ref: (item.type, held)})
            ids[item.blob_ref] = held.provider_id
        return ids

    async def _keep(self, part: Part, media: Sequence[Material], held: Sequence[Held | None]) -> None:
        """What went up with the message need not go up again."""
        items = part.media if isinstance(part, MediaPart) else ()
        brought = {
            item.blob_ref: (item.type, one)
            for item, material, one in zip(items, media, held, strict=False)
            if item.blob_ref and one and not isinstance(material, str)
        }
        if brought:
            await self._desk.shelf.keep(self._job.claim, await self._bot(), brought)

    async def _bot(self) -> str:
        if self._bot_id is not None:
            return self._bot_id
        answer = await self._desk.bots.identity(self._adapter, self._target.token, lambda: self._next_slot(beside=True))
        if isinstance(answer, Failed):
            raise Over(answer)
        self._bot_id = answer
        return answer

    def _goes_now(self, *, has_bytes: bool) -> bool:
        """A first call whose slot has come, without a wait that would be over at once."""
        desk = self._desk
        if self._called or not desk.slots.is_now(self._job, desk.upload_time if has_bytes else desk.call_time):
            return False
        self._called = True
        return True

    def _next_slot(self, *, beside: bool = False, has_bytes: bool = False) -> Awaitable[None]:
        desk = self._desk
        call_time = desk.upload_time if has_bytes else desk.call_time
        if self._called or beside:
            return desk.slots.next(self._job, call_time, beside=beside)
        self._called = True
        return desk.slots.first(self._job, call_time)

    async def _wait(self, seconds: float) -> None:
        await self._desk.slots.pause(seconds)
        self._desk.slots.check(self._job)


@cache
def _seconds(platform: str, outcome: str) -> metrics.Series:
    return provider_seconds.of({"platform": platform, "outcome": outcome})


def _own_id(item: PlannedMedia) -> str:
    return item.file_id or item.attachment_token or item.url or ""


def _stale(part: Part, media: Sequence[Material]) -> Mapping[str, str]:
    """The ids that we remembered, by blob; one that came with the post cannot be replaced."""
    items = part.media if isinstance(part, MediaPart) else ()
    pairs = zip(items, media, strict=True)
    return {item.blob_ref: one for item, one in pairs if item.blob_ref and isinstance(one, str)}
