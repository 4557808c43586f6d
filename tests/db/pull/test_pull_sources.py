"""Who pulls which source, when, and what a run says of it."""

import asyncio
import json
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import asyncpg
import pytest
from db.support.builders import Tenant

LEASE = timedelta(seconds=60)
ALL = 1000


class Sources:
    def __init__(self, tenant: Tenant) -> None:
        self.tenant = tenant
        self.db = tenant.db

    async def add(self, source_id: str, *, every: str = "5 minutes", endpoint: bool = True, **columns: Any) -> None:
        await self.db.execute(
            "INSERT INTO pull_sources (workspace_id, source_id, kind, every, enabled) "
            "VALUES ($1, $2, 'rss', $3::text::interval, $4)",
            *(self.tenant.workspace, source_id, every, columns.get("enabled", True)),
        )
        if endpoint:
            await self.db.execute(
                "INSERT INTO workspace_endpoints (workspace_id, kind, source_id) VALUES ($1, 'pull_source', $2)",
                *(self.tenant.workspace, source_id),
            )

    async def claim(
        self, limit: int = ALL, *, lease: timedelta = LEASE, per_workspace: int = ALL
    ) -> list[asyncpg.Record]:
        query = "SELECT * FROM claim_pull_sources($1, $2, $3, 'trace')"
        return list(await self.db.fetch(query, limit, lease, per_workspace))

    async def finish(self, claim: asyncpg.Record, outcome: str = "ok", **options: Any) -> bool:
        ours: bool = await self.db.fetchval(
            "SELECT finish_pull($1, $2, $3, $4, $5, $6, $7)",
            *(claim["workspace_id"], claim["source_id"], claim["lease_token"], outcome),
            json.dumps(options["error"]) if "error" in options else None,
            *(options.get("wait"), options.get("more", False)),
        )
        return ours

    async def make_due(self) -> None:
        await self.db.execute("UPDATE pull_sources SET next_pull_at = clock_timestamp() - interval '1 second'")

    async def rests(self, source_id: str) -> timedelta:
        found: timedelta = await self.db.fetchval(
            "SELECT next_pull_at - clock_timestamp() FROM pull_sources WHERE source_id = $1", source_id
        )
        return found

    async def row(self, source_id: str) -> asyncpg.Record:
        row = await self.db.fetchrow("SELECT * FROM pull_sources WHERE source_id = $1", source_id)
        assert row is not None
        return row

    async def run(self, run_id: UUID) -> tuple[dict[str, Any], bool]:
        """Its stats, and whether it is over."""
        row = await self.db.fetchrow("SELECT * FROM ingest_runs WHERE run_id = $1", run_id)
        assert row is not None
        assert (row["kind"], row["trace_id"]) == ("pull", "trace")
        return json.loads(row["stats_json"]), row["finished_at"] is not None


@pytest.fixture
def sources(tenant: Tenant) -> Sources:
    return Sources(tenant)


def ids(claims: list[asyncpg.Record]) -> list[str]:
    return sorted(claim["source_id"] for claim in claims)


async def test_what_is_due_is_handed_out_once(sources: Sources) -> None:
    for name in ("a", "b"):
        await sources.add(name)
    await sources.add("off", enabled=False)
    await sources.add("later")
    await sources.db.execute(
        "UPDATE pull_sources SET next_pull_at = now() + interval '1 hour' WHERE source_id = 'later'"
    )

    first, second = await sources.claim(), await sources.claim()

    assert (ids(first), second) == (["a", "b"], [])


async def test_of_many_who_claim_at_once_each_source_goes_to_one(sources: Sources) -> None:
    names = [f"{number:02}" for number in range(30)]
    for name in names:
        await sources.add(name)

    claims = await asyncio.gather(*(sources.claim(10) for _ in range(12)))

    assert ids([claim for batch in claims for claim in batch]) == sorted(set(ids([c for b in claims for c in b])))
    rest = await sources.claim()
    assert ids([*(claim for batch in claims for claim in batch), *rest]) == names


async def test_a_source_whose_puller_went_silent_is_handed_out_again_and_its_run_says_so(sources: Sources) -> None:
    await sources.add("a")
    [lost] = await sources.claim(lease=timedelta(0))

    [again] = await sources.claim()

    assert again["lease_token"] != lost["lease_token"]
    assert not await sources.finish(lost)
    stats, over = await sources.run(lost["run_id"])
    assert (stats["lost"], stats["sources"]["a"]["outcome"], over) == (1, "lost", True)
    assert (await sources.run(again["run_id"]))[1] is False


async def test_a_good_pull_is_followed_by_the_next_after_the_interval(sources: Sources) -> None:
    await sources.add("a", every="7 minutes")
    [claim] = await sources.claim()

    assert await sources.finish(claim)

    assert timedelta(minutes=6.9) < await sources.rests("a") <= timedelta(minutes=7)
    assert (await sources.row("a"))["lease_token"] is None


async def test_a_source_with_more_to_read_is_due_at_once(sources: Sources) -> None:
    await sources.add("a")
    [claim] = await sources.claim()

    await sources.finish(claim, more=True)

    assert ids(await sources.claim()) == ["a"]


async def test_failures_in_a_row_let_a_source_rest_longer_and_longer_and_a_success_ends_that(sources: Sources) -> None:
    await sources.add("a", every="1 minute")
    for place in range(4):
        await sources.make_due()
        [claim], began = await sources.claim(), datetime.now(UTC)
        await sources.finish(claim, "failed", error={"code": "timeout"})
        due, ended = (await sources.row("a"))["next_pull_at"], datetime.now(UTC)
        usual = timedelta(minutes=2**place)
        assert began + 0.79 * usual <= due <= ended + 1.21 * usual

    row = await sources.row("a")
    await sources.make_due()
    [claim] = await sources.claim()
    await sources.finish(claim, "unchanged")

    assert (row["failures"], json.loads(row["last_error"])) == (4, {"code": "timeout"})
    row = await sources.row("a")
    assert (row["failures"], row["last_error"]) == (0, None)


@pytest.mark.parametrize(
    ("every", "failures", "wait", "jitter", "rest"),
    [
        ("5 minutes", 1, None, 0.5, "5 minutes"),
        ("5 minutes", 2, None, 0.5, "10 minutes"),
        ("5 minutes", 30, None, 0.5, "6 hours"),
        ("1 day", 5, None, 0.5, "1 day"),
        ("1 second", 1, None, 0.5, "10 seconds"),
        ("5 minutes", 1, None, 0.0, "4 minutes"),
        ("5 minutes", 1, "1 hour", 0.0, "1 hour"),
        ("5 minutes", 1, "1 hour", 1.0, "72 minutes"),
        ("5 minutes", 1, "30 days", 0.0, "1 day"),
        ("5 minutes", 4, "1 minute", 0.5, "40 minutes"),
    ],
)
async def test_how_long_a_source_rests(
    sources: Sources, every: str, failures: int, wait: str | None, jitter: float, rest: str
) -> None:
    query = "SELECT pull_delay($1::text::interval, $2, $3::text::interval, $4) = $5::text::interval"

    assert await sources.db.fetchval(query, every, failures, wait, jitter, rest)


async def test_a_source_without_an_endpoint_says_so_and_rests_while_the_next_goes_on(sources: Sources) -> None:
    await sources.add("lonely", endpoint=False)
    await sources.add("a")

    claims = await sources.claim()

    [event] = await sources.tenant.events("ingress_config_error")
    assert ids(claims) == ["a"]
    assert json.loads(event["error"])["code"] == "endpoint_missing"
    assert json.loads(event["meta"])["source_id"] == "lonely"
    assert await sources.rests("lonely") > timedelta(minutes=3)
    stats, over = await sources.run(claims[0]["run_id"])
    assert (stats["skipped"], stats["sources"]["lonely"]["outcome"], over) == (1, "config_error", False)


async def test_an_endpoint_that_is_disabled_is_as_good_as_none(sources: Sources) -> None:
    await sources.add("a")
    await sources.db.execute("UPDATE workspace_endpoints SET enabled = false")

    assert await sources.claim() == []
    assert len(await sources.tenant.events("ingress_config_error")) == 1


@pytest.mark.parametrize("status", ["paused", "disabled"])
async def test_a_workspace_that_does_not_work_rests(sources: Sources, status: str) -> None:
    await sources.add("a")
    await sources.db.execute("UPDATE workspaces SET status = $1::text::workspace_status", status)

    before = await sources.claim()
    await sources.db.execute("UPDATE workspaces SET status = 'active'")

    assert (before, ids(await sources.claim())) == ([], ["a"])


async def test_a_workspace_has_one_run_per_tick_and_it_ends_with_its_last_source(sources: Sources) -> None:
    other = Sources(await Tenant.create(sources.db))
    for name in ("a", "b"):
        await sources.add(name)
    await other.add("c")

    claims = {claim["source_id"]: claim for claim in await sources.claim()}

    assert claims["a"]["run_id"] == claims["b"]["run_id"] != claims["c"]["run_id"]
    await sources.finish(claims["a"])
    assert (await sources.run(claims["a"]["run_id"]))[1] is False
    await sources.finish(claims["b"], "failed", error={"code": "dns"})
    stats, over = await sources.run(claims["a"]["run_id"])
    assert over
    assert stats["ok"] == stats["failed"] == 1
    assert stats["sources"] == {
        "a": {"ok": 1, "outcome": "ok"},
        "b": {"failed": 1, "outcome": "failed", "error": {"code": "dns"}},
    }


async def test_of_two_sources_that_end_together_one_ends_the_run(sources: Sources) -> None:
    for number in range(8):
        await sources.add(str(number))
    claims = await sources.claim()

    await asyncio.gather(*(sources.finish(claim) for claim in claims))

    stats, over = await sources.run(claims[0]["run_id"])
    assert (stats["ok"], over) == (8, True)


async def test_an_interrupted_pull_is_due_again_as_if_it_had_not_been(sources: Sources) -> None:
    await sources.add("a")
    await sources.db.execute("UPDATE pull_sources SET failures = 2, last_error = '{}'")
    [claim] = await sources.claim()

    await sources.finish(claim, "interrupted")

    row = await sources.row("a")
    assert (row["failures"], row["last_error"], row["pulled_at"]) == (2, "{}", None)
    assert ids(await sources.claim()) == ["a"]


async def test_a_workspace_never_has_more_out_than_its_share(sources: Sources) -> None:
    other = Sources(await Tenant.create(sources.db))
    for number in range(10):
        await sources.add(f"mine {number}")
    await other.add("theirs")

    first = await sources.claim(5, per_workspace=3)
    second = await sources.claim(5, per_workspace=3)

    assert len(first) == 4
    assert "theirs" in ids(first)
    assert second == []


async def test_workspaces_take_turns_although_one_has_waited_longer_with_everything(sources: Sources) -> None:
    other = Sources(await Tenant.create(sources.db))
    for number in range(5):
        await sources.add(f"mine {number}")
    await sources.make_due()
    await other.add("theirs")

    assert "theirs" in ids(await sources.claim(2))


@pytest.mark.parametrize(
    ("outcome", "action"),
    [("config_error", "ingress_config_error"), ("rejected", "ingress_payload_rejected"), ("failed", "pull_failed")],
)
async def test_what_a_human_must_see_leaves_an_event(sources: Sources, outcome: str, action: str) -> None:
    await sources.add("a")
    [claim] = await sources.claim()

    await sources.finish(claim, outcome, error={"code": "too_large", "message": "x"})

    [event] = await sources.tenant.events()
    meta = json.loads(event["meta"])
    assert (event["what"], event["ended"], json.loads(event["error"])["code"]) == (action, "error", "too_large")
    assert (meta["source_id"], meta["run_id"], meta["trace_id"]) == ("a", str(claim["run_id"]), "trace")
    assert (await sources.row("a"))["failures"] == 1


@pytest.mark.parametrize("outcome", ["failed", "rejected", "config_error"])
async def test_the_error_of_a_pull_is_told_without_secrets_and_in_bounds(sources: Sources, outcome: str) -> None:
    await sources.add("a")
    [claim] = await sources.claim()
    told = "no answer of https://me:hunter2@feed.example/?token=s3cr3t, ask +7 900 123-45-67 " + "я" * 5000

    await sources.finish(claim, outcome, error={"code": "connect", "message": told})

    [event] = await sources.tenant.events()
    stats, _ = await sources.run(claim["run_id"])
    for kept in (event["error"], (await sources.row("a"))["last_error"], json.dumps(stats, ensure_ascii=False)):
        assert len(kept.encode()) < 2000
        assert "no answer of" in kept
        assert not any(secret in kept for secret in ("hunter2", "s3cr3t", "123-45-67"))


async def test_every_failed_pull_leaves_one_event_and_a_good_one_none(sources: Sources) -> None:
    await sources.add("a")
    for outcome in ("failed", "failed", "ok", "unchanged", "interrupted"):
        await sources.make_due()
        [claim] = await sources.claim()
        await sources.finish(claim, outcome, error={"code": "connect", "message": "x"} if outcome == "failed" else None)

    events = await sources.tenant.events()

    assert [event["what"] for event in events] == ["pull_failed", "pull_failed"]
    assert [json.loads(event["meta"])["failures"] for event in events] == [1, 2]


async def test_a_pull_ends_in_a_way_that_is_known(sources: Sources) -> None:
    await sources.add("a")
    [claim] = await sources.claim()

    with pytest.raises(asyncpg.PostgresError, match="cannot end as") as raised:
        await sources.finish(claim, "maybe")

    assert raised.value.sqlstate == "AP011"
