"""What follows when a platform is asked, and when something fails in between."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

from autopost_contracts.ids import RunId, WorkspaceId
from autopost_contracts.outcomes import Category, Failed, Scope
from autopost_dispatcher.circuit.probing import Prober
from autopost_dispatcher.claim.claim import SendJob
from autopost_dispatcher.gateway import NEVER, Claimed, Probe
from autopost_runtime.config.load import Secret
from autopost_runtime.lifecycle.service import Service
from dispatcher.support.fakes import FakeDatabase, FakePlatform
from dispatcher.support.sample_claims import WORKSPACE, claim
from harness.eventually import eventually

NOW = datetime(2026, 1, 1, tzinfo=UTC)
AWAY = Failed.transient(Scope.PLATFORM, "connect")
REFUSED = Failed(category=Category.PERMANENT, scope=Scope.CHANNEL, code="unauthorized", answered=True)


def probe(**fields: Any) -> Probe:
    given: dict[str, Any] = {"probe_at": NOW, "within": timedelta(seconds=5), "is_trial": False}
    key = {"workspace_id": WORKSPACE, "platform": "telegram", "rate_group": "bot", "auth_ref": "bot"}
    return Probe(**(key | given | fields))


class Circuits:
    """Hands out what it is given, and half a circuit for an answered probe."""

    def __init__(self, *probes: Probe) -> None:
        self.probes = list(probes)
        self.recorded: list[dict[str, Any] | None] = []
        self.trials: list[str] = []
        self.raises: list[Exception] = []

    async def take_probes(self) -> list[Probe]:
        taken, self.probes = self.probes, []
        return taken

    async def record_probe(self, probe: Probe, probe_at: datetime, error: dict[str, Any] | None) -> str | None:
        if self.raises:
            raise self.raises.pop()
        self.recorded.append(error)
        return "half" if error is None else "open"

    async def claim_trial(self, probe: Probe, run_id: RunId, lease: timedelta) -> Claimed:
        if self.raises:
            raise self.raises.pop()
        self.trials.append(probe.rate_group)
        return Claimed((claim(),), NEVER)


class Stage:
    def __init__(self, circuits: Circuits, platform: FakePlatform, world: FakeDatabase) -> None:
        self.service = Service("dispatcher")
        self.taken: list[SendJob] = []
        self.lost: list[WorkspaceId] = []
        self.prober = Prober(
            circuits,
            {"telegram": platform},
            world,
            self.service,
            run_id=RunId(uuid4()),
            lease=timedelta(seconds=300),
            every=timedelta(milliseconds=1),
            timeout=timedelta(seconds=5),
            take=self.taken.extend,
            lost=lambda workspace, _: self.lost.append(workspace),
        )


@asynccontextmanager
async def probing(
    circuits: Circuits, platform: FakePlatform | None = None, world: FakeDatabase | None = None
) -> AsyncIterator[Stage]:
    stage = Stage(circuits, platform or FakePlatform(), world or FakeDatabase())
    running = asyncio.create_task(stage.prober.run())
    yield stage
    stage.service.stop()
    async with asyncio.timeout(10):
        await running


async def test_an_answer_is_followed_by_one_trial() -> None:
    circuits = Circuits(probe())
    async with probing(circuits) as stage:
        await eventually(lambda: stage.taken)

    assert circuits.recorded == [None]
    assert [job.is_trial for job in stage.taken] == [True]


async def test_a_refusal_is_an_answer() -> None:
    circuits, platform = Circuits(probe()), FakePlatform()
    platform.unidentified = REFUSED
    async with probing(circuits, platform) as stage:
        await eventually(lambda: stage.taken)

    assert circuits.recorded == [None]


async def test_without_an_answer_nothing_is_tried() -> None:
    circuits, platform = Circuits(probe()), FakePlatform()
    platform.unidentified = AWAY
    async with probing(circuits, platform) as stage:
        await eventually(lambda: circuits.recorded)

    assert circuits.recorded == [{"code": "connect", "category": "TRANSIENT", "scope": "platform"}]
    assert (circuits.trials, stage.taken) == ([], [])


async def test_with_nothing_to_ask_with_the_trial_tells_what_is_missing() -> None:
    world = FakeDatabase()
    world.secret = None
    circuits = Circuits(probe(), probe(platform="unknown"))
    async with probing(circuits, world=world) as stage:
        await eventually(lambda: len(stage.taken) == 2)


async def test_a_group_that_may_try_is_not_asked_again() -> None:
    circuits = Circuits(probe(is_trial=True, probe_at=None, within=None))
    async with probing(circuits) as stage:
        await eventually(lambda: stage.taken)

    assert circuits.recorded == []


async def test_a_trial_whose_answer_was_lost_is_given_back() -> None:
    circuits = Circuits(probe(is_trial=True, probe_at=None, within=None))
    circuits.raises = [TimeoutError()]
    async with probing(circuits) as stage:
        await eventually(lambda: stage.lost)

    assert (stage.lost, stage.taken) == ([WORKSPACE], [])


async def test_one_probe_that_fails_stops_no_other() -> None:
    circuits = Circuits(probe())
    circuits.raises = [ValueError("a bug")]
    async with probing(circuits) as stage:
        await eventually(lambda: not circuits.raises)
        circuits.probes = [probe()]
        await eventually(lambda: stage.taken)


async def test_a_stop_waits_for_no_answer() -> None:
    class Silent(FakePlatform):
        was_asked = asyncio.Event()

        async def probe(self, token: Secret, within: timedelta) -> Failed | None:
            self.was_asked.set()
            await asyncio.Event().wait()
            return None

    circuits, platform = Circuits(probe()), Silent()
    async with probing(circuits, platform):
        await asyncio.wait_for(platform.was_asked.wait(), 10)

    assert circuits.recorded == []
