"""Refusals and failures are told once each, whoever else tells some meanwhile and whatever the database says."""

import asyncio
import re
from datetime import timedelta
from typing import Any
from uuid import UUID

import asyncpg
import pytest
from autopost_contracts.events import Action
from autopost_contracts.ids import EndpointId
from autopost_ingest.admission import refusals as module
from autopost_ingest.admission.refusals import Refusals
from autopost_ingest.gateway import Endpoint
from autopost_runtime.telemetry import metrics
from harness.eventually import eventually
from ingest.support.ingest_client import DEMO_WORKSPACE
from structlog.testing import capture_logs

AWAY = asyncpg.CannotConnectNowError("away")


class Told:
    """Stands in for the database: by endpoint or code it has a fault once, and holds what is not let go."""

    def __init__(self) -> None:
        self.refusals: list[tuple[int, int]] = []
        self.failures: list[str] = []
        self.faults: dict[int | str, Exception] = {}
        self.held: dict[int | str, asyncio.Event] = {}
        self.reached: list[int | str] = []

    async def refuse_ingress(self, endpoint: Endpoint, *args: Any) -> None:
        name, count = endpoint.endpoint_id.int, args[-1]
        await self._meet(name)
        self.refusals.append((name, count))

    async def fail_push(self, _: Endpoint, __: str | None, code: str) -> None:
        await self._meet(code)
        self.failures.append(code)

    async def flush_refusals(self) -> None:
        await self._meet("flush")

    async def _meet(self, name: int | str) -> None:
        self.reached.append(name)
        if name in self.held:
            await self.held[name].wait()
        if name in self.faults:
            raise self.faults.pop(name)

    def hold(self, name: int | str) -> asyncio.Event:
        self.held[name] = asyncio.Event()
        return self.held[name]


@pytest.fixture
def told() -> Told:
    return Told()


@pytest.fixture
def refusals(told: Told) -> Refusals:
    """Each is told at once; what is to wait for the timer meets a fault first."""
    return Refusals(told, None, every=timedelta())  # type: ignore[arg-type]


def endpoint(number: int) -> Endpoint:
    return Endpoint(
        workspace_id=DEMO_WORKSPACE,  # type: ignore[arg-type]
        endpoint_id=EndpointId(UUID(int=number)),
        workspace_status="active",
        max_payload_bytes=1,
    )


async def refuse(refusals: Refusals, number: int) -> None:
    await refusals.refuse(endpoint(number), Action.INGRESS_PAYLOAD_REJECTED, "payload_rejected", "malformed")


def forgotten(what: str) -> float:
    found = re.findall(rf"^autopost_ingress_{what}_forgotten_total (\S+)$", metrics.render().decode(), re.MULTILINE)
    return float(found[0]) if found else 0


async def test_what_a_request_tells_meanwhile_the_timer_leaves_alone(told: Told, refusals: Refusals) -> None:
    told.faults = {1: AWAY, 2: AWAY}
    await refuse(refusals, 1)
    await refuse(refusals, 2)
    let_go = told.hold(1)
    flush = asyncio.create_task(refusals.flush())
    await eventually(lambda: told.reached[2:] == [1])

    await refuse(refusals, 2)
    let_go.set()
    await flush

    assert told.refusals == [(2, 2), (1, 1)]


async def test_of_two_flushes_at_once_each_failure_is_told_by_one(told: Told, refusals: Refusals) -> None:
    for code in "abc":
        refusals.fail(endpoint(1), code)
    let_go = told.hold("a")
    timer = asyncio.create_task(refusals.flush())
    await eventually(lambda: told.reached == ["a"])

    last = asyncio.create_task(refusals.flush())
    let_go.set()
    await asyncio.gather(timer, last)

    assert told.failures == ["a", "b", "c"]


async def test_the_last_flush_waits_for_what_the_timer_is_telling(told: Told, refusals: Refusals) -> None:
    refusals.fail(endpoint(1), "a")
    told.faults["a"], let_go = AWAY, told.hold("a")
    timer = asyncio.create_task(refusals.flush())
    await eventually(lambda: told.reached == ["a"])

    last = asyncio.create_task(refusals.flush())
    let_go.set()
    await asyncio.gather(timer, last)

    assert told.failures == ["a"]


async def test_a_failure_that_is_being_told_makes_room_for_another(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    refusals, before = _with_room_for(2, told, monkeypatch), forgotten("failures")
    refusals.fail(endpoint(1), "a")
    refusals.fail(endpoint(1), "b")
    let_go = told.hold("a")
    flush = asyncio.create_task(refusals.flush())
    await eventually(lambda: told.reached == ["a"])

    refusals.fail(endpoint(1), "c")
    let_go.set()
    await flush

    assert (told.failures, forgotten("failures") - before) == (["a", "b", "c"], 0)


async def test_a_failure_that_could_not_be_told_is_forgotten_when_its_room_is_taken(
    told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusals, before = _with_room_for(2, told, monkeypatch), forgotten("failures")
    refusals.fail(endpoint(1), "a")
    refusals.fail(endpoint(1), "b")
    told.faults["a"], let_go = AWAY, told.hold("a")
    flush = asyncio.create_task(refusals.flush())
    await eventually(lambda: told.reached == ["a"])

    refusals.fail(endpoint(1), "c")
    let_go.set()
    await flush
    await refusals.flush()

    assert (told.failures, forgotten("failures") - before) == (["b", "c"], 1)


def _with_room_for(failures: int, told: Told, monkeypatch: pytest.MonkeyPatch) -> Refusals:
    monkeypatch.setattr(module, "FAILURES_KEPT", failures)
    return Refusals(told, None, every=timedelta())  # type: ignore[arg-type]


async def test_a_refusal_that_the_database_will_never_take_is_forgotten_and_the_others_are_told(
    told: Told, refusals: Refusals
) -> None:
    """As that of an endpoint which an operator has deleted meanwhile."""
    before = forgotten("refusals")
    for number in (1, 1, 2):
        told.faults[number] = AWAY
        await refuse(refusals, number)
    told.faults[1] = asyncpg.ForeignKeyViolationError("no such endpoint")

    await refusals.flush()

    assert (told.refusals, forgotten("refusals") - before) == ([(2, 1)], 2)


async def test_a_failure_that_the_database_will_never_take_is_forgotten_and_the_others_are_told(
    told: Told, refusals: Refusals
) -> None:
    before = forgotten("failures")
    for code in "abc":
        refusals.fail(endpoint(1), code)
    told.faults["b"] = asyncpg.CheckViolationError("not so")

    await refusals.flush()

    assert (told.failures, forgotten("failures") - before) == (["a", "c"], 1)


async def test_the_timer_goes_on_after_whatever_the_database_says(told: Told, refusals: Refusals) -> None:
    told.faults["flush"] = asyncpg.InsufficientPrivilegeError("not yours")
    timer = asyncio.create_task(refusals.run())
    await eventually(lambda: "flush" in told.reached)

    refusals.fail(endpoint(1), "a")

    await eventually(lambda: told.failures == ["a"])
    timer.cancel()


async def test_an_error_of_the_database_is_logged_without_what_it_says(told: Told, refusals: Refusals) -> None:
    """Its detail may hold a row."""
    told.faults[1] = asyncpg.ForeignKeyViolationError("Key (secret)=(hunter2) is not present")

    with capture_logs() as logged:
        await refuse(refusals, 1)

    [line] = logged
    assert (line["event"], line["sqlstate"]) == ("refusals.untold", "23503")
    assert "hunter2" not in str(line)


async def test_a_mistake_of_ours_is_logged_whole_and_the_others_are_told(told: Told, refusals: Refusals) -> None:
    for number in (1, 2):
        told.faults[number] = AWAY
        await refuse(refusals, number)
    told.faults |= {1: TypeError("wrong"), "flush": TypeError("wrong")}

    with capture_logs() as logged:
        await refusals.flush()

    assert told.refusals == [(2, 1)]
    assert [line["event"] for line in logged if "exc_info" in line] == ["refusals.untold", "refusals.unflushed"]
