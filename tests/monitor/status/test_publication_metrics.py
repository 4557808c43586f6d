"""Publications in the metrics of the monitor and in the report of the status page."""

import json
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from autopost_monitor.gateway import Gateway
from autopost_monitor.status.publication_metrics import PublicationMetrics
from autopost_runtime.config.load import ServiceConfig
from autopost_runtime.postgres.pool import open_database
from autopost_runtime.telemetry import metrics
from db.support.builders import Tenant, permanent, sent
from db.support.publications import Publisher, now
from harness.databases import Database


@pytest.fixture
async def gateway(database: Database) -> AsyncIterator[Gateway]:
    config = ServiceConfig(database_url=database.url, database_role="autopost_monitor", database_pool=2)
    async with open_database(config, "monitor") as opened:
        yield Gateway(opened)


@pytest.fixture
async def publisher(database: Database) -> Publisher:
    return await Publisher.create(await Tenant.create(database.pool), title="News")


async def failed(publisher: Publisher, text: str, **fields):
    publication = await publisher.begun(text, **fields)
    await publisher.tenant.set_channel(publisher.channel, "next_allowed_at = NULL")
    await publisher.tenant.commit(permanent(await publisher.tenant.claim_one(), code="message_too_long"))
    return publication


async def report(publisher: Publisher, workspace=None):
    return json.loads(await publisher.tenant.db.fetchval("SELECT status_report($1)", workspace))["publications"]


async def test_those_that_have_not_ended_are_counted_by_status(gateway, publisher):
    await publisher.draft()
    await publisher.scheduled("later", at=now() + timedelta(hours=1))
    await failed(publisher, "bad")
    await publisher.begun("good")
    await publisher.tenant.set_channel(publisher.channel, "next_allowed_at = NULL")
    await publisher.tenant.commit(sent(await publisher.tenant.claim_one()))

    await PublicationMetrics(gateway).run_once()

    text = metrics.render().decode()
    counts = {status: f'autopost_publications{{status="{status}"}} ' for status in ("draft", "scheduled", "failed")}
    assert [f"{line}1.0" in text for line in counts.values()] == [True] * 3
    assert 'autopost_publications{status="publishing"} 0.0' in text
    assert "published" not in "".join(line for line in text.splitlines() if line.startswith("autopost_publications{"))
    # two commands to publish and one dead letter
    assert "autopost_commands_unpublished 3.0" in text


async def test_the_report_says_what_is_due_next_what_is_late_and_what_went_wrong(publisher):
    soon = now() + timedelta(hours=1)
    await publisher.scheduled("later", at=soon + timedelta(hours=1))
    await publisher.scheduled("soon", at=soon)
    late = now() - timedelta(seconds=30)
    await publisher.scheduled("late", at=late)
    bad = await failed(publisher, "bad", owner="mailto:ann@shop.example")

    [seen] = await report(publisher)

    assert (seen["scheduled"], seen["publishing"], seen["paused"], seen["failed"]) == (2, 1, 0, 1)
    assert seen["next_at"][:19] == soon.isoformat()[:19]
    assert seen["late_since"][:19] == late.isoformat()[:19]
    assert seen["untold"] == 1
    assert seen["unpublished"] == 3
    [trouble] = seen["troubles"]
    assert (trouble["publication_id"], trouble["code"], trouble["channel"]) == (str(bad), "content", "News")


async def test_a_workspace_sees_its_own_and_one_without_any_has_no_section(publisher):
    await publisher.draft()
    neighbour = await Tenant.create(publisher.tenant.db)

    assert [one["workspace_id"] for one in await report(publisher)] == [str(publisher.tenant.workspace)]
    assert await report(publisher, neighbour.workspace) == []
