"""Send one reply part by part, each in its slot and recorded before the next."""

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Protocol

from autopost_adapters.base import AcceptedPart, Target
from autopost_contracts.ids import WorkspaceId
from autopost_contracts.outcomes import Category, Failed, Outcome, Scope, Sent
from autopost_contracts.plan import MediaPart, Part
from autopost_runtime.config.load import Secret
from autopost_runtime.lifecycle.backoff import Backoff
from autopost_runtime.postgres.pool import is_retryable
from autopost_runtime.secrets.credentials import Identity
from autopost_runtime.telemetry.logs import get_logger
from msgspec.structs import replace

from autopost_bot.conversation import spans
from autopost_bot.conversation.gateway import ConversationGateway
from autopost_bot.conversation.silence import Silences
from autopost_bot.conversation.slots import GiveBack, LeaseLost, ReplySlots
from autopost_bot.conversation.taken import Bot, ReplyJob, Slot


class ReplyAdapter(Protocol):
    """What a reply needs of the adapter of a platform."""

    async def send(self, part: Part, target: Target) -> AcceptedPart | Failed: ...

    async def find(
        self, part: Part, target: Target, since: datetime, other_than: Collection[str]
    ) -> AcceptedPart | Failed | None: ...

    async def answer(
        self, callback_id: str, token: Secret, *, notification: str = "", remove_buttons: bool = False
    ) -> Failed | None: ...

    async def probe(self, token: Secret, within: timedelta) -> Failed | None: ...


class Identities(Protocol):
    def known(self, workspace: WorkspaceId, platform: str, auth_ref: str) -> Identity | None: ...

    async def identity(self, workspace: WorkspaceId, platform: str, auth_ref: str) -> Identity | None: ...

    def forget(self, workspace: WorkspaceId, platform: str, auth_ref: str) -> None: ...


NO_TOKEN_WAIT = timedelta(seconds=30)
"""A reply whose token cannot be read waits: the customer is answered when somebody has bound it."""


async def token_of(identities: Identities, workspace: WorkspaceId, bot: Bot) -> Secret | None:
    key = (workspace, bot.provider, bot.auth_ref)
    found = identities.known(*key) or await identities.identity(*key)
    return found.token if found else None


class ReplySender:
    def __init__(
        self,
        gateway: ConversationGateway,
        adapters: Mapping[str, ReplyAdapter],
        identities: Identities,
        slots: ReplySlots,
        silences: Silences,
    ) -> None:
        self._gateway = gateway
        self._adapters = adapters
        self._identities = identities
        self._slots = slots
        self._silences = silences

    async def send(self, job: ReplyJob) -> Outcome:
        """Raises ``GiveBack`` when nothing was sent and ``LeaseLost`` when there is nothing to record."""
        with spans.send(job):
            outcome = await Sending(
                self._gateway, self._adapters, self._identities, self._slots, self._silences, job
            ).run()
        self._silences.note(job, outcome)
        return outcome


class Sending:
    """The calls of one reply."""

    def __init__(
        self,
        gateway: ConversationGateway,
        adapters: Mapping[str, ReplyAdapter],
        identities: Identities,
        slots: ReplySlots,
        silences: Silences,
        job: ReplyJob,
    ) -> None:
        self._gateway = gateway
        self._identities = identities
        self._slots = slots
        self._silences = silences
        self._job = job
        self._adapter = adapters.get(job.bot.provider)
        self._slot = job.slot
        self._in_doubt = job.maybe_sent

    async def run(self) -> Outcome:
        if self._adapter is None:
            return Failed.permanent(Scope.PLATFORM, "platform_unknown", f"unknown platform {self._job.bot.provider}")
        parts, ids = self._job.plan.parts, list(self._job.progress)
        if any(isinstance(part, MediaPart) for part in parts):
            return Failed.permanent(Scope.DELIVERY, "media_unsupported", "replies with media cannot be sent yet")
        for index in range(len(ids), len(parts)):
            answer = await self._find(parts[index], ids) if self._in_doubt else None
            answer = answer or await self._send(parts[index])
            if isinstance(answer, Failed):
                return answer
            ids.append(answer.provider_ids)
            self._in_doubt = False
            if index + 1 < len(parts):
                await self._record(index, answer)
        return Sent(provider_message_id=ids[self._job.plan.main_part][0], parts=tuple(ids))

    async def _find(self, part: Part, ids: list[tuple[str, ...]]) -> AcceptedPart | Failed | None:
        """Nothing is sent again until the platform shows that it is not there."""
        await self._slots.wait(self._job, beside=True)
        known = {*self._job.sent_ids, *(one for part_ids in ids for one in part_ids)}
        target = await self._target()
        with self._silences.calling(self._job):
            found = await self._adapter_of().find(part, target, self._job.created_at, known)
        if isinstance(found, Failed):
            return replace(found, category=Category.TRANSIENT, ambiguous=True)
        return found

    async def _send(self, part: Part) -> AcceptedPart | Failed:
        """A token that is refused may have been rotated: it is read again and tried once more."""
        target = await self._target()
        await self._slots.wait(self._job, self._next_slot())
        with self._silences.calling(self._job):
            answer = await self._adapter_of().send(part, target)
        if isinstance(answer, Failed) and answer.code == "unauthorized":
            self._identities.forget(self._job.chat.workspace_id, self._job.bot.provider, self._job.bot.auth_ref)
            renewed = await self._target()
            if renewed.token.reveal() != target.token.reveal():
                await self._slots.wait(self._job)
                with self._silences.calling(self._job):
                    answer = await self._adapter_of().send(part, renewed)
        return answer

    def _next_slot(self) -> Slot | None:
        slot, self._slot = self._slot, None
        return slot

    async def _target(self) -> Target:
        token = await token_of(self._identities, self._job.chat.workspace_id, self._job.bot)
        if token is None:
            raise GiveBack(NO_TOKEN_WAIT)
        return Target(chat=self._job.chat.chat_id, token=token)

    async def _record(self, index: int, accepted: AcceptedPart) -> None:
        """An accepted part that is not recorded would be sent again."""
        backoff = Backoff()
        while self._job.chat.lease.left() > 0:
            try:
                if await self._gateway.record_reply_part(self._job.chat, index, accepted.provider_ids):
                    return
                break
            except Exception as exc:
                if not is_retryable(exc):
                    raise
                get_logger().warning("reply_part.unknown", error=type(exc).__name__, chat=self._job.chat.token)
            await backoff.wait()
        raise LeaseLost

    def _adapter_of(self) -> ReplyAdapter:
        if self._adapter is None:
            raise ValueError("the platform has no adapter")
        return self._adapter
