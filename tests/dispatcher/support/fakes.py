"""A fake platform and a fake database for tests of sending."""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any, Literal
from uuid import UUID

from autopost_adapters.base import AcceptedPart, Held, Material, Source, Target
from autopost_contracts.ids import WorkspaceId
from autopost_contracts.outcomes import Failed
from autopost_contracts.plan import MediaPart, Part, Plan, PlannedMedia, TextPart
from autopost_dispatcher.claim.claim import SendJob
from autopost_dispatcher.gateway import Claim, SlotGrant, UploadState
from autopost_dispatcher.send.bots import Bots
from autopost_dispatcher.send.calls import Calls
from autopost_dispatcher.send.delivery import SendContext
from autopost_dispatcher.send.send import DeliverySender
from autopost_dispatcher.send.slots import Slots
from autopost_dispatcher.send.uploads import UploadCache
from autopost_runtime.config.load import Secret
from autopost_runtime.secrets.credentials import Identity
from autopost_runtime.storage.objects import ObjectMissing
from dispatcher.support.sample_claims import job

CALL_TIME = timedelta(seconds=30)
UPLOAD_TIME = timedelta(seconds=120)


class FakePlatform:
    """Accepts everything, under the number of the call, until told otherwise."""

    platform = "telegram"
    identifies_by_call = True
    patience: Mapping[str, Sequence[timedelta]] = {"not_ready": (timedelta(), timedelta())}

    def __init__(self, *, uploads_apart: bool = False, can_find: bool = False) -> None:
        self.uploads_apart = uploads_apart
        self.can_find = can_find
        self.sent: list[tuple[str, Target, list[str | bytes]]] = []
        self.uploaded: list[bytes] = []
        self.failures: list[Failed] = []
        self.found: AcceptedPart | Failed | None = None
        self.asked: list[tuple[str, set[str]]] = []
        self.identified = 0
        self.unidentified: Failed | None = None
        self.bot_id = "77"
        self.after: Callable[[], None] = lambda: None
        """What happens while a call is answered."""

    async def identify(self, token: Secret) -> str | Failed:
        self.identified += 1
        return self.unidentified or self.bot_id

    async def probe(self, token: Secret, within: timedelta) -> Failed | None:
        return self.unidentified

    async def send(self, part: Part, target: Target, media: Sequence[Material] = ()) -> AcceptedPart | Failed:
        given = [one if isinstance(one, str) else await _read(one) for one in media]
        self.sent.append((part.text, target, given))
        self.after()
        if self.failures:
            return self.failures.pop(0)
        held = tuple(None if isinstance(one, str) else Held(provider_id=f"file-{one.decode()}") for one in given)
        return AcceptedPart(provider_ids=(str(len(self.sent)),), held=held)

    async def upload(self, item: PlannedMedia, source: Source, target: Target) -> Held | Failed:
        self.uploaded.append(await _read(source))
        return self.failures.pop(0) if self.failures else Held(provider_id=f"token-{len(self.uploaded)}")

    async def find(
        self, part: Part, target: Target, since: datetime, other_than: Collection[str]
    ) -> AcceptedPart | Failed | None:
        self.asked.append((part.text, set(other_than)))
        return self.found

    @property
    def texts(self) -> list[str]:
        return [text for text, _, _ in self.sent]


class FakeDatabase:
    """Plans, tokens, progress, slots and uploads, as a sender asks for them."""

    bucket = "bucket"

    def __init__(self, *texts: str, parts: Sequence[Part] = ()) -> None:
        self._parts = tuple(parts) or tuple(TextPart(text=text) for text in texts)
        self.secret: Secret | None = Secret("token")
        self.bot_id: str | None = "77"
        """As the binding names it."""
        self.is_sealed = True
        self.learnt: list[str] = []
        self.taken = False
        """The bot is another workspace's."""
        self.forgotten_tokens = 0
        self.recorded: list[tuple[int, tuple[str, ...]]] = []
        self.ours = True
        self.away = 0
        """How many writes the database misses."""
        self.slot_in: timedelta | None = timedelta()
        self.slots_named: list[timedelta] = []
        """Told before any is taken."""
        self.slots_taken: list[bool] = []
        """For each slot asked for: whether it was for a call beside the chat."""
        self.slots_missed: list[float | None] = []
        self.uploads_ended: list[UUID] = []
        self.blobs: dict[str, bytes] = {}
        self.ids: dict[str, str] = {}
        self.busy = 0
        """How often another claim is found to be bringing what is asked for."""
        self.takes = 0
        self.was_asked = asyncio.Event()

    def job(self, **fields: Any) -> SendJob:
        """A claim of what this world wants sent."""
        return job(plan=Plan(version=2, platform="telegram", parts=self._parts), **fields)

    def shows(self, *parts: Part) -> None:
        self._parts = parts

    def known(self, workspace: WorkspaceId, platform: str, auth_ref: str) -> Identity | None:
        return None

    async def identity(self, workspace: WorkspaceId, platform: str, auth_ref: str) -> Identity | None:
        return (
            None if self.secret is None else Identity(token=self.secret, bot_id=self.bot_id, is_sealed=self.is_sealed)
        )

    def forget(self, workspace: WorkspaceId, platform: str, auth_ref: str) -> None:
        self.forgotten_tokens += 1

    async def learn_bot(self, claim: Claim, rotated_at: datetime, bot_id: str) -> Literal["ours", "changed", "taken"]:
        if self.away > 0:
            self.away -= 1
            raise ConnectionResetError
        self.learnt.append(bot_id)
        return "taken" if self.taken else "ours"

    async def record_progress(self, claim: Claim, part: int, provider_ids: tuple[str, ...]) -> bool:
        if self.away > 0:
            self.away -= 1
            raise ConnectionResetError
        self.recorded.append((part, provider_ids))
        return self.ours

    async def take_slot(self, claim: Claim, *, group_only: bool, missed: float | None) -> SlotGrant | None:
        self.slots_missed.append(missed)
        if self.slots_named:
            return SlotGrant(0.0, self.slots_named.pop(0).total_seconds(), taken=False)
        self.slots_taken.append(group_only)
        is_near = self.slot_in is not None and self.slot_in < timedelta(seconds=5)
        return None if self.slot_in is None else SlotGrant(0.0, self.slot_in.total_seconds(), taken=is_near)

    async def end_upload(self, claim: Claim) -> None:
        self.uploads_ended.append(claim.channel_id)
        if self.away > 0:
            self.away -= 1
            raise ConnectionResetError

    async def take_uploads(self, claim: Claim, bot_id: str, kinds: Mapping[str, str]) -> list[UploadState]:
        self.takes += 1
        self.was_asked.set()
        self.busy -= 1
        return [self._upload(ref, busy=self.busy >= 0) for ref in kinds]

    async def keep_uploads(self, claim: Claim, bot_id: str, held: Mapping[str, tuple[str, Held]]) -> None:
        if self.away > 0:
            raise ConnectionResetError
        self.ids |= {ref: one.provider_id for ref, (_, one) in held.items()}

    async def forget_uploads(self, claim: Claim, bot_id: str, ids: Mapping[str, str]) -> None:
        for ref in ids:
            self.ids.pop(ref, None)

    async def stream(self, key: str) -> AsyncIterator[bytes]:
        if key not in self.blobs:
            raise ObjectMissing(key)
        for byte in self.blobs[key]:
            yield bytes([byte])

    def store(self, body: bytes) -> PlannedMedia:
        ref = f"sha256:{sha256(body).hexdigest()}"
        self.blobs[ref] = body
        return PlannedMedia(type="image", blob_ref=ref, size=len(body))

    def _upload(self, ref: str, *, busy: bool) -> UploadState:
        held = self.ids.get(ref)
        return UploadState(
            blob_ref=ref,
            verdict="held" if held else "busy" if busy else "ours" if ref in self.blobs else "missing",
            provider_id=held,
            origin_url=f"s3://{self.bucket}/{ref}",
            sha256=ref.removeprefix("sha256:"),
            content_type="image/png",
            size_bytes=len(self.blobs.get(ref, b"")),
            name=None,
        )


def sender(platform: FakePlatform, world: FakeDatabase, stopping: asyncio.Event | None = None) -> DeliverySender:
    calls = Calls()
    context = SendContext(
        calls=calls,
        progress=world,
        slots=Slots(world, stopping or asyncio.Event(), calls),
        uploads=UploadCache(world, world),
        bots=Bots(world),
        call_time=CALL_TIME.total_seconds(),
        upload_time=UPLOAD_TIME.total_seconds(),
    )
    return DeliverySender({"telegram": platform}, world, context)


def pictures(*items: PlannedMedia) -> MediaPart:
    return MediaPart(media=items)


async def _read(source: Source) -> bytes:
    return b"".join([chunk async for chunk in source.open()])
