"""A platform or a token that is away under load costs no post, and nothing else its rate.

``AUTOPOST_FULL=1`` runs the outage with the times of the defaults: ten minutes.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from itertools import pairwise
from typing import Any, NamedTuple

import msgspec
import pytest
from autopost_contracts.plan import Plan, TextPart
from autopost_simulator.fingerprint import fingerprint
from dispatcher.support.running_dispatcher import ANOTHER, TOKENS, RunningDispatchers, configured, running_dispatcher
from harness.databases import Database
from harness.eventually import eventually
from harness.full import FULL

PHASES: tuple[dict[str, Any], ...] = ({"status": 502}, {"hang": True}, {"reset": "before"})
PLENTY = timedelta(seconds=60)
SENDS = {"telegram": "sendMessage", "max": "POST /messages"}


class Scale(NamedTuple):
    phase: float
    """Seconds of each of the three."""
    rate: int
    settings: dict[str, timedelta]
    back_within: float
    """Seconds from the end of the outage to the first send."""
    use: float
    """The part of the rate that must be used; on a busy machine, of what was used of it without an outage."""
    window: float
    """Seconds of full rate before the outage and after the first send."""


HURRIED = {
    "probe_base": timedelta(milliseconds=50),
    "probe_cap": timedelta(seconds=1),
    "probe_timeout": timedelta(milliseconds=500),
    "stall_after": timedelta(milliseconds=250),
    "provider_timeout": timedelta(seconds=1),
    "sending_lease": timedelta(seconds=20),
    "backoff_base": timedelta(milliseconds=50),
}
SCALE = Scale(200, 27, {}, 65, 0.99, 120) if FULL else Scale(2, 10, HURRIED, 3, 0.9, 3)


class Watch:
    """What the platforms saw, read before the simulator forgets it."""

    def __init__(self, stage: RunningDispatchers) -> None:
        self._stage = stage
        self._lines: dict[int, dict[str, Any]] = {}

    async def look(self) -> None:
        for line in await self._stage.log(after=max(self._lines, default=0)):
            self._lines[line["seq"]] = line

    def sends(self, platform: str, begin: float, end: float = float("inf"), *, token: str | None = None) -> list[float]:
        """When, by the monotonic clock; accepted or not."""
        return [at for at, _ in self._of(platform, begin, end, token)]

    def accepted(
        self, platform: str, begin: float, end: float = float("inf"), *, token: str | None = None
    ) -> list[float]:
        return [at for at, line in self._of(platform, begin, end, token) if line["message_ids"]]

    def _of(self, platform: str, begin: float, end: float, token: str | None) -> list[tuple[float, dict[str, Any]]]:
        return [
            (line["arrived_ns"] / 1e9, line)
            for line in self._lines.values()
            if line["platform"] == platform
            and line["method"] == SENDS[platform]
            and token in (None, line["token"])
            and begin <= line["arrived_ns"] / 1e9 < end
        ]


@contextlib.asynccontextmanager
async def watching(stage: RunningDispatchers) -> AsyncIterator[Watch]:
    watch = Watch(stage)

    async def follow() -> None:
        while True:
            await watch.look()
            await asyncio.sleep(0.2)

    task = asyncio.create_task(follow())
    try:
        yield watch
    finally:
        task.cancel()


@pytest.fixture(autouse=True)
async def policy(stage: RunningDispatchers) -> None:
    """As a dispatcher with these settings writes it at its start."""
    if not FULL:
        minute = timedelta(minutes=1)
        probes = HURRIED["probe_base"], HURRIED["probe_cap"]
        await stage.tenant.db.execute(
            "SELECT adopt_policy(5, $1, $2, $2, $3, $4)", HURRIED["backoff_base"], minute, *probes
        )


async def post(stage: RunningDispatchers, count: int) -> None:
    await stage.enqueue(*(Plan(version=2, platform="telegram", parts=(TextPart(text="hello"),)) for _ in range(count)))


async def load(stage: RunningDispatchers) -> None:
    """So much for each group that nobody runs out of work."""
    seconds = 3 * SCALE.phase + SCALE.back_within + 3 * SCALE.window
    await post(stage, int(seconds * SCALE.rate / 8) + 8)


async def fault(stage: RunningDispatchers, effect: dict[str, Any], **where: Any) -> None:
    await stage.control("faults", {"name": "outage", "effect": effect, **where})


async def outage(stage: RunningDispatchers, **where: Any) -> tuple[float, float]:
    """Down, then hanging, then resetting; from when to when."""
    began = time.monotonic()
    for effect in PHASES:
        await fault(stage, effect, **where)
        await asyncio.sleep(SCALE.phase)
    await stage.clear_faults()
    return began, time.monotonic()


def use(accepted: list[float], seconds: float) -> float:
    return len(accepted) / seconds / SCALE.rate


def is_as_good(seen: float, without_outage: float) -> bool:
    return seen >= SCALE.use * min(1, without_outage)


async def circuits(stage: RunningDispatchers) -> dict[str, str]:
    rows = await stage.tenant.db.fetch(
        "SELECT rate_group, circuit::text FROM platform_limits WHERE workspace_id = $1", stage.tenant.workspace
    )
    return {row["rate_group"]: row["circuit"] for row in rows}


async def is_busy(watch: Watch) -> None:
    await eventually(lambda: len(watch.accepted("telegram", 0)) > SCALE.rate, within=PLENTY)


async def most_attempts(stage: RunningDispatchers) -> int:
    most: int = await stage.tenant.db.fetchval(
        "SELECT max(attempt) FROM deliveries WHERE workspace_id = $1", stage.tenant.workspace
    )
    return most


@pytest.mark.time_limit(1200 if FULL else 90)
async def test_an_outage_of_one_platform_costs_no_post_and_the_other_platform_nothing(
    database: Database, stage: RunningDispatchers, record_property: Callable[[str, str], None]
) -> None:
    for platform in ("telegram", "max"):
        await stage.channels(platform, 8, rate_rps=None, max_parallel=4)
        await stage.tenant.group(SCALE.rate, platform, platform)
    await load(stage)

    async with (
        running_dispatcher(configured(database.url, stage.simulator, **SCALE.settings)),
        watching(stage) as watch,
    ):
        await is_busy(watch)
        await asyncio.sleep(SCALE.window)
        began, ended = await outage(stage, platform="telegram")
        first = await eventually(lambda: watch.accepted("telegram", ended), within=timedelta(seconds=SCALE.back_within))
        await asyncio.sleep(SCALE.window + 1)
        statuses = await stage.statuses()

    assert "dead" not in statuses
    assert await most_attempts(stage) <= 3
    until = first[0] + SCALE.window
    under_way = len(watch.sends("telegram", began, ended))
    before = use(watch.accepted("max", began - SCALE.window, began), SCALE.window)
    beside = use(watch.accepted("max", began, ended), ended - began)
    after = use(watch.accepted("telegram", first[0], until), SCALE.window)
    beside_after = use(watch.accepted("max", first[0], until), SCALE.window)
    record_property("outage", f"{ended - began:.0f} s, first send {first[0] - ended:.2f} s after it, {under_way} calls")
    record_property("other", f"before {before:.3f}, meanwhile {beside:.3f}, afterwards {beside_after:.3f}")
    record_property("own", f"afterwards {after:.3f}")
    assert is_as_good(beside, before)
    assert under_way <= 3 + SCALE.rate / 2
    assert is_as_good(after, beside_after)
    opened = await stage.tenant.events("group_opened", "group_closed")
    assert [event["what"] for event in opened] == ["group_opened", "group_closed"]


@pytest.mark.time_limit(1200 if FULL else 90)
async def test_an_outage_of_one_token_stops_that_token_alone(
    database: Database, stage: RunningDispatchers, record_property: Callable[[str, str], None]
) -> None:
    await stage.channels("telegram", 4, rate_rps=None, max_parallel=4)
    await stage.tenant.db.execute(
        "INSERT INTO credential_bindings (workspace_id, auth_ref, platform, secret_ref) "
        "VALUES ($1, 'another', 'telegram', 'env:ANOTHER')",
        stage.tenant.workspace,
    )
    await stage.control("tokens", [{"platform": "telegram", "token": ANOTHER, "limits": []}])
    for number in range(4):
        chat = -1_000_000_001_000 - number
        await stage.control("chats", [{"platform": "telegram", "id": chat, "limits": []}])
        await stage.tenant.channel(target_id=str(chat), auth_ref="another", rate_group="another", max_parallel=4)
    for group in ("telegram", "another"):
        await stage.tenant.group(SCALE.rate, group)
    await load(stage)
    await load(stage)

    async with (
        running_dispatcher(configured(database.url, stage.simulator, **SCALE.settings)),
        watching(stage) as watch,
    ):
        await is_busy(watch)
        await asyncio.sleep(SCALE.window)
        began, ended = await outage(stage, token=TOKENS["telegram"])
        token, other = fingerprint(TOKENS["telegram"]), fingerprint(ANOTHER)
        first = await eventually(
            lambda: watch.accepted("telegram", ended, token=token), within=timedelta(seconds=SCALE.back_within)
        )
        statuses = await stage.statuses()

    assert "dead" not in statuses
    assert await most_attempts(stage) <= 3
    assert len(watch.sends("telegram", began, ended, token=token)) <= 3 + SCALE.rate / 2
    before = use(watch.accepted("telegram", began - SCALE.window, began, token=other), SCALE.window)
    beside = use(watch.accepted("telegram", began, ended, token=other), ended - began)
    record_property("outage", f"{ended - began:.0f} s, first send {first[0] - ended:.2f} s after it")
    record_property("other", f"before {before:.3f}, meanwhile {beside:.3f}")
    assert is_as_good(beside, before)
    assert first[0] >= ended


@pytest.mark.parametrize("effect", [{"half": True}, {"garbage": True}, {"status": 500}], ids=str)
async def test_half_answers_open_the_circuit_and_whole_ones_close_it(
    database: Database, stage: RunningDispatchers, effect: dict[str, Any]
) -> None:
    await stage.channels("telegram", 4)
    await fault(stage, effect, platform="telegram")
    await post(stage, 5)

    async with running_dispatcher(configured(database.url, stage.simulator, **HURRIED)):
        await eventually(lambda: _is(stage, "open"), within=PLENTY)
        calls = len(await stage.accepted()), len(await stage.log())
        await stage.clear_faults()
        assert await stage.settled() == {"sent": 20}

    assert calls[0] == 0
    assert await circuits(stage) == {"telegram": "closed"}
    assert await most_attempts(stage) <= 3


async def test_a_platform_that_hangs_gets_nothing_more_before_the_first_call_times_out(
    database: Database, stage: RunningDispatchers
) -> None:
    await stage.channels("telegram", 8, max_parallel=1000)
    await stage.channels("max", 1)
    await stage.tenant.group(40, "telegram")
    await fault(stage, {"hang": True}, platform="telegram")
    await post(stage, 40)
    patient = {**HURRIED, "provider_timeout": timedelta(seconds=6), "sending_lease": timedelta(seconds=60)}

    async with running_dispatcher(configured(database.url, stage.simulator, **patient)):
        await eventually(lambda: _is_stalled(stage), within=PLENTY)
        before = await _sending(stage)
        await asyncio.sleep(1.5)
        after = await _sending(stage)
        assert await circuits(stage) == {"telegram": "closed", "max": "closed"}
        await stage.clear_faults()
        assert await stage.settled() == {"sent": 9 * 40}

    assert after - before <= 4, "nothing more of the group that hangs"
    assert before <= 40
    assert len(await stage.accepted()) >= 9 * 40


@pytest.mark.parametrize("beside", [0, 30], ids=["alone", "beside others"])
async def test_a_delivery_that_itself_causes_a_500_ends_dead_after_its_attempts(
    database: Database, stage: RunningDispatchers, beside: int
) -> None:
    bad, *_ = await stage.channels("telegram", 1 + bool(beside))
    await fault(stage, {"status": 500}, chat=int(bad))
    await post(stage, 1)
    good = await stage.tenant.db.fetchval("SELECT channel_id FROM channels WHERE target_id <> $1", bad)
    for _ in range(beside):
        await stage.tenant.enqueue(routing={"channels": [str(good)]})
    await _give_plans(stage)

    async with running_dispatcher(configured(database.url, stage.simulator, **HURRIED)):
        assert await stage.settled() == {"dead": 1} | ({"sent": 1 + beside} if beside else {})

    [dead] = [row for row in await stage.tenant.deliveries() if row["status"] == "dead"]
    assert dead["attempt"] == 5
    assert await circuits(stage) == {"telegram": "closed"}


async def test_two_dispatchers_share_the_probes_and_let_one_delivery_try_at_a_time(
    database: Database, stage: RunningDispatchers
) -> None:
    await stage.channels("telegram", 4)
    config = configured(database.url, stage.simulator, **HURRIED)
    await fault(stage, {"status": 502}, platform="telegram")
    await post(stage, 10)
    async with running_dispatcher(config), running_dispatcher(config):
        await eventually(lambda: _is(stage, "open"), within=PLENTY)
        await fault(stage, {"status": 502}, platform="telegram", method="sendMessage")
        before = len([line for line in await stage.log() if line["method"] == "sendMessage"])
        await eventually(lambda: _has_tried(stage, before, 4), within=PLENTY)
        log = await stage.log()
        await stage.clear_faults()
        assert await stage.settled() == {"sent": 40}

    probes = [line["arrived_ns"] / 1e9 for line in log if line["method"] == "getMe"]
    assert all(later - earlier > 0.02 for earlier, later in pairwise(probes))
    trials = [e for e in await stage.tenant.events("send_attempt") if '"trial": true' in e["meta"]]
    assert len(trials) >= 4
    assert len({(e["delivery_id"], e["attempt"]) for e in trials}) == len(trials)


async def _has_tried(stage: RunningDispatchers, before: int, more: int) -> bool:
    return len([line for line in await stage.log() if line["method"] == "sendMessage"]) >= before + more


async def _give_plans(stage: RunningDispatchers) -> None:
    """Of posts that were enqueued without one."""
    plan = Plan(version=2, platform="telegram", parts=(TextPart(text="hello"),))
    await stage.tenant.db.execute("UPDATE renderings SET plan = $1", msgspec.json.encode(plan).decode())


async def _is(stage: RunningDispatchers, state: str) -> bool:
    return set((await circuits(stage)).values()) == {state}


async def _is_stalled(stage: RunningDispatchers) -> bool:
    found: bool = await stage.tenant.db.fetchval(
        "SELECT bool_or(stalled_until > clock_timestamp()) FROM platform_limits WHERE rate_group = 'telegram'"
    )
    return found


async def _sending(stage: RunningDispatchers) -> int:
    return (await stage.statuses()).get("sending", 0)
