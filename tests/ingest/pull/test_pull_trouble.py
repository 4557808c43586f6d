"""Pulling goes on whatever one source, item, row or answer of the database does; the others are served meanwhile."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import asyncpg
import pytest
from autopost_ingest.pull.gateway import PullClaim, PullGateway
from autopost_ingest.pull.import_items import ImportLimits
from autopost_runtime.lifecycle.service import Service
from harness.databases import Database
from harness.eventually import eventually
from ingest.support.pull_setup import Pulls, Site, numbered

DEEP = "(repeat('[', 3000) || repeat(']', 3000))::jsonb"
"""More than Python reads."""


@pytest.fixture
async def pulls(database: Database) -> Pulls:
    return await Pulls.create(database)


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with Site().open() as opened:
        yield opened


class NotYet(PullGateway):
    """The first claim meets an error that nobody expects to pass."""

    def __init__(self, gateway: PullGateway, exc: Exception) -> None:
        self.__dict__.update(gateway.__dict__)
        self._faults = [exc]

    async def claim_pull_sources(self, *args: Any) -> list[PullClaim]:
        if self._faults:
            raise self._faults.pop()
        return await super().claim_pull_sources(*args)


@pytest.mark.parametrize("exc", [asyncpg.InsufficientPrivilegeError("not yet"), TypeError("wrong"), KeyError("x")])
async def test_one_error_of_a_claim_does_not_end_pulling(pulls: Pulls, site: Site, exc: Exception) -> None:
    await pulls.add("blog", "rss", url=site.put("/feed", numbered(3)))
    service = Service("ingest")

    async def all_there() -> bool:
        return service.stopping.is_set() or len(await pulls.texts()) == 3

    async with pulls.replica(wrapped=lambda gateway: NotYet(gateway, exc)) as replica:
        running = service.spawn(replica.puller.run(service), "pull")
        await eventually(all_there)
        service.stop()
        await asyncio.wait({running})

    assert (service.exit_code, len(await pulls.texts())) == (0, 3)


@pytest.mark.parametrize(
    "spoil",
    [
        "INSERT INTO pull_cursors (workspace_id, source_id, cursor_json) SELECT workspace_id, 'bad', '[]' "
        "FROM pull_sources WHERE source_id = 'bad'",
        "INSERT INTO pull_cursors (workspace_id, source_id, cursor_json) SELECT workspace_id, 'bad', 'null' "
        "FROM pull_sources WHERE source_id = 'bad'",
        "UPDATE pull_sources SET config_json = '[]' WHERE source_id = 'bad'",
        "UPDATE pull_sources SET config_json = 'null' WHERE source_id = 'bad'",
        "UPDATE pull_sources SET config_json = '{\"url\": \"http://[\"}' WHERE source_id = 'bad'",
        f"UPDATE pull_sources SET config_json = {DEEP} WHERE source_id = 'bad'",
        "INSERT INTO pull_cursors (workspace_id, source_id, cursor_json) SELECT workspace_id, 'bad', "
        f"{DEEP} FROM pull_sources WHERE source_id = 'bad'",
    ],
)
async def test_a_row_that_makes_no_sense_rests_and_the_others_are_pulled(pulls: Pulls, site: Site, spoil: str) -> None:
    await pulls.add("bad", "rss", url=site.put("/bad", numbered(1)))
    await pulls.add("good", "rss", url=site.put("/feed", numbered(3)))
    await pulls.sql(spoil)

    async with pulls.replica() as replica:
        await replica.puller.round()

    assert len(await pulls.texts()) == 3
    assert (await pulls.error("bad"))[1] == 1
    assert [event["source_id"] for event in await pulls.events("ingress_config_error")] == ["bad"]


async def test_an_interval_that_no_date_can_take_is_refused_before_it_stops_every_claim(
    pulls: Pulls, site: Site
) -> None:
    await pulls.add("bad", "rss", endpoint=False, url=site.put("/bad", numbered(1)))
    await pulls.add("good", "rss", url=site.put("/feed", numbered(3)))

    with pytest.raises(asyncpg.CheckViolationError):
        await pulls.sql("UPDATE pull_sources SET every = '290000 years' WHERE source_id = 'bad'")
    await pulls.sql("UPDATE pull_sources SET every = '1 year', failures = 1000 WHERE source_id = 'bad'")
    async with pulls.replica() as replica:
        await replica.puller.round()

    assert len(await pulls.texts()) == 3


class Broken(PullGateway):
    """Asked for the source ``bad``, it raises what nobody expects."""

    def __init__(self, gateway: PullGateway, exc: Exception) -> None:
        self.__dict__.update(gateway.__dict__)
        self._exc = exc

    async def unseen_pull_items(self, claim: PullClaim, refs: Sequence[str]) -> set[str]:
        if claim.source_id == "bad":
            raise self._exc
        return await super().unseen_pull_items(claim, refs)


@pytest.mark.parametrize("exc", [RecursionError(), KeyError("x"), asyncpg.InternalServerError("x"), LookupError()])
async def test_a_source_that_breaks_in_a_way_nobody_expects_rests_and_the_others_are_pulled(
    pulls: Pulls, site: Site, exc: Exception
) -> None:
    await pulls.add("bad", "rss", url=site.put("/bad", numbered(1)))
    await pulls.add("good", "rss", url=site.put("/feed", numbered(3)))

    async with pulls.replica(wrapped=lambda gateway: Broken(gateway, exc)) as replica:
        await replica.puller.round()
        await pulls.again(replica)

    assert len(await pulls.texts()) == 3
    assert await pulls.error("bad") == (type(exc).__name__, 2)
    assert [event["source_id"] for event in await pulls.events("pull_failed")] == ["bad", "bad"]
    assert await pulls.sql(
        "SELECT next_pull_at > clock_timestamp() + interval '7 minutes' FROM pull_sources WHERE source_id = 'bad'"
    )


async def test_an_item_that_the_database_cannot_take_comes_again_and_the_others_are_taken_in(
    pulls: Pulls, site: Site
) -> None:
    await pulls.sql(
        "CREATE FUNCTION refuse_one() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no'; END $$"
    )
    await pulls.sql(
        "CREATE TRIGGER refuse_one BEFORE INSERT ON pull_receipts FOR EACH ROW WHEN (NEW.source_ref = '0003') "
        "EXECUTE FUNCTION refuse_one()"
    )
    await pulls.add("blog", "rss", url=site.put("/feed", numbered(7), headers={"ETag": '"1"'}), include=["title"])

    async with pulls.replica(limits=ImportLimits(chunk=2)) as replica:
        await replica.puller.round()
        without, failed = await pulls.refs(), await pulls.error("blog")
        await pulls.sql("DROP TRIGGER refuse_one ON pull_receipts")
        await pulls.again(replica)

    assert without == ["0000", "0001", "0002", "0004", "0005", "0006"]
    assert failed == ("not_stored", 1)
    assert len(await pulls.texts()) == 7
    assert await pulls.error("blog") is None


async def test_an_item_that_cannot_be_read_is_told_and_the_others_are_posted(pulls: Pulls, site: Site) -> None:
    feed = '{"version":"https://jsonfeed.org/version/1","items":[{"id":"1","title":"a"},{"title":[]},{"id":"3","title":"b"}]}'
    await pulls.add("blog", "rss", url=site.put("/feed", feed))

    async with pulls.replica() as replica:
        await replica.puller.round()

    assert len(await pulls.texts()) == 2
    assert [event["code"] for event in await pulls.events("ingress_payload_rejected")] == ["unreadable"]
    assert await pulls.error("blog") is None
