"""What failed before a call is given back or fails certainly; only what came after a call is in doubt."""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Literal
from uuid import uuid4

import asyncpg
import pytest
from autopost_adapters.base import AcceptedPart, Held, Material, Target
from autopost_contracts.ids import RunId, WorkspaceId
from autopost_contracts.outcomes import Failed, Scope
from autopost_contracts.plan import Part
from autopost_dispatcher.claim.claim import SendJob
from autopost_dispatcher.commit.commit import Committer
from autopost_dispatcher.dispatch import Dispatch
from autopost_dispatcher.gateway import Claim, SlotGrant, UploadState
from autopost_dispatcher.send.raw_answers import RawAnswers
from autopost_runtime.postgres.pool import NotConnected
from autopost_runtime.secrets.credentials import Identity
from autopost_runtime.storage.payloads import Payloads
from dispatcher.support.fakes import FakeDatabase, FakePlatform, pictures, sender
from harness.eventually import eventually

AWAY = [
    ConnectionResetError(),
    NotConnected(ConnectionRefusedError()),
    asyncpg.AdminShutdownError("terminating"),
    asyncpg.InternalClientError("cannot switch to state 12"),
]


class Faulty(FakeDatabase):
    """A database that fails in one place; ``at`` names it."""

    def __init__(self, at: str, exc: Exception, *texts: str, parts: Sequence[Part] = ()) -> None:
        super().__init__(*texts, parts=parts)
        self.at = at
        self.exc = exc

    def _fail(self, place: str) -> None:
        if place == self.at:
            raise self.exc

    async def identity(self, workspace: WorkspaceId, platform: str, auth_ref: str) -> Identity | None:
        self._fail("identity")
        return await super().identity(workspace, platform, auth_ref)

    async def take_slot(self, claim: Claim, *, group_only: bool, missed: float | None) -> SlotGrant | None:
        self._fail("take_slot")
        return await super().take_slot(claim, group_only=group_only, missed=missed)

    async def take_uploads(self, claim: Claim, bot_id: str, kinds: Mapping[str, str]) -> list[UploadState]:
        self._fail("take_uploads")
        return await super().take_uploads(claim, bot_id, kinds)

    async def keep_uploads(self, claim: Claim, bot_id: str, held: Mapping[str, tuple[str, Held]]) -> None:
        self._fail("keep_uploads")
        await super().keep_uploads(claim, bot_id, held)

    async def end_upload(self, claim: Claim) -> None:
        self._fail("end_upload")
        await super().end_upload(claim)

    async def record_progress(self, claim: Claim, part: int, provider_ids: tuple[str, ...]) -> bool:
        self._fail("record_progress")
        return await super().record_progress(claim, part, provider_ids)


class Broken(FakePlatform):
    """Its adapter has a bug, before or after the platform heard of it."""

    def __init__(self, *, call: bool, find: bool = False) -> None:
        super().__init__(can_find=find)
        self._calls = call
        self._finds = find

    async def send(self, part: Part, target: Target, media: Sequence[Material] = ()) -> AcceptedPart | Failed:
        if self._calls:
            raise RuntimeError("a bug")
        return await super().send(part, target, media)

    async def find(self, *_: Any) -> AcceptedPart | Failed | None:
        if self._finds:
            raise RuntimeError("a bug")
        return None


class Ledger:
    def __init__(self) -> None:
        self.outcomes: list[dict[str, Any]] = []

    async def commit_deliveries(
        self, workspace: WorkspaceId, run_id: RunId, outcomes: list[dict[str, Any]], *_: Any
    ) -> set[Any]:
        self.outcomes += outcomes
        return set()

    async def commit_sent(self, *args: Any) -> list[int]:
        self.outcomes.append({"result": "sent"})
        return []


async def _flown(platform: FakePlatform, world: FakeDatabase, job: SendJob) -> dict[str, Any]:
    """What was committed of one delivery, beside one that nothing is wrong with."""
    ledger = Ledger()
    committer = Committer(
        ledger,  # type: ignore[arg-type]
        run_id=RunId(uuid4()),
        pause=timedelta(hours=1),
        disable_streak=3,
        committed=lambda _: None,
    )
    dispatch = Dispatch(
        sender(platform, world), RawAnswers(Payloads(None, "dispatcher")), committer, concurrency=10, claim_limit=0
    )
    running = asyncio.create_task(committer.run())
    dispatch.take([job])
    await eventually(lambda: bool(ledger.outcomes))
    running.cancel()
    [outcome] = ledger.outcomes
    return outcome


@pytest.mark.parametrize("exc", AWAY, ids=lambda exc: type(exc).__name__)
async def test_a_database_error_before_the_call_releases_the_delivery(exc: Exception) -> None:
    no_identity = Faulty("identity", exc, "one")
    no_slot = Faulty("take_slot", exc, "one")
    no_uploads = Faulty("take_uploads", exc)
    no_uploads.shows(pictures(no_uploads.store(b"a")))
    platform = FakePlatform(can_find=True)

    outcomes = [
        await _flown(platform, no_identity, no_identity.job()),
        await _flown(platform, no_slot, no_slot.job(verify=True)),
        await _flown(platform, no_uploads, no_uploads.job()),
    ]

    assert platform.sent == []
    assert [one["result"] for one in outcomes] == ["released"] * 3


@pytest.mark.parametrize("exc", AWAY, ids=lambda exc: type(exc).__name__)
async def test_a_database_error_between_two_parts_releases_the_delivery(exc: Exception) -> None:
    world, platform = Faulty("take_slot", exc, "one", "two"), FakePlatform()

    outcome = await _flown(platform, world, world.job())

    assert (platform.texts, world.recorded) == (["one"], [(0, ("1",))])
    assert outcome["result"] == "released"


async def test_a_bug_before_the_call_is_a_certain_failure_of_that_delivery() -> None:
    world, platform = Faulty("identity", KeyError("a bug"), "one"), FakePlatform()

    outcome = await _flown(platform, world, world.job())

    assert (outcome["category"], outcome["scope"], outcome["code"]) == ("TRANSIENT", "delivery", "internal_error")
    assert not outcome["ambiguous"]


@pytest.mark.parametrize("exc", [RuntimeError("a bug"), ConnectionResetError()], ids=lambda exc: type(exc).__name__)
async def test_a_bug_during_the_call_is_an_ambiguous_failure(exc: Exception) -> None:
    world, platform = FakeDatabase("one"), FakePlatform()

    def fail() -> None:
        raise exc

    platform.after = fail

    outcome = await _flown(platform, world, world.job())

    assert (outcome["category"], outcome["scope"], outcome["code"]) == ("TRANSIENT", "delivery", "internal_error")
    assert outcome["ambiguous"]


async def test_a_bug_during_the_search_is_an_ambiguous_failure() -> None:
    world, platform = FakeDatabase("one"), Broken(call=False, find=True)

    outcome = await _flown(platform, world, world.job(verify=True))

    assert (outcome["code"], outcome["ambiguous"]) == ("internal_error", True)
    assert platform.sent == []


async def test_a_certain_refusal_is_not_ambiguous() -> None:
    """A forgotten file id is replaced by another call; what the database misses before that one is given back."""
    world, platform = Faulty("", ConnectionResetError()), FakePlatform()
    item = world.store(b"a")
    world.shows(pictures(item))
    world.ids[str(item.blob_ref)] = "forgotten"
    platform.failures = [Failed.transient(Scope.DELIVERY, "media_expired")]
    platform.after = lambda: setattr(world, "at", "take_uploads")

    outcome = await _flown(platform, world, world.job())

    assert len(platform.sent) == 1
    assert outcome["result"] == "released"


async def test_what_was_accepted_is_sent_although_its_file_id_cannot_be_kept() -> None:
    world = Faulty("keep_uploads", asyncpg.CharacterNotInRepertoireError("a NUL"))
    world.shows(pictures(world.store(b"a")))

    outcome = await _flown(FakePlatform(), world, world.job())

    assert outcome["result"] == "sent"


async def test_an_accepted_part_that_can_never_be_recorded_is_held_and_not_sent_again() -> None:
    world = Faulty("record_progress", asyncpg.CharacterNotInRepertoireError("a NUL"), "one", "two")
    platform = FakePlatform()

    outcome = await _flown(platform, world, world.job())

    assert (outcome["code"], outcome["ambiguous"], outcome["hold"]) == ("unrecorded", True, True)
    assert platform.texts == ["one"]


class Rotated(FakeDatabase):
    """The binding changes while the post goes out, and the database is away afterwards."""

    async def learn_bot(self, claim: Claim, rotated_at: datetime, bot_id: str) -> Literal["ours", "changed", "taken"]:
        await super().learn_bot(claim, rotated_at, bot_id)
        self.away = 1
        return "changed"


async def test_what_arrived_while_its_token_was_rotated_is_sent() -> None:
    world, platform = Rotated(), FakePlatform()
    world.bot_id = None
    world.shows(pictures(world.store(b"a")))

    outcome = await _flown(platform, world, world.job())

    assert (len(platform.sent), len(world.learnt), outcome["result"]) == (1, 1, "sent")


async def test_an_answer_is_not_lost_over_what_follows_an_upload() -> None:
    world, platform = Faulty("end_upload", ValueError("refused")), FakePlatform()
    world.shows(pictures(world.store(b"a")))

    outcome = await _flown(platform, world, world.job(pace=0.01))

    assert (len(platform.sent), outcome["result"]) == (1, "sent")
