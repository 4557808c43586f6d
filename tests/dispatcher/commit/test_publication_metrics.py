"""The documented metrics of publications: counted when an outcome is committed, and of no post."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from uuid import uuid4

import pytest
from autopost_contracts.ids import RunId, WorkspaceId
from autopost_contracts.outcomes import Failed, Outcome, Scope, Sent
from autopost_dispatcher.commit.commit import Committer
from autopost_dispatcher.commit.finished import FinishedDelivery
from autopost_dispatcher.commit.publication_metrics import PublicationMetrics
from autopost_dispatcher.gateway import Claim, Gateway, PublicationFacts
from autopost_dispatcher.send.end_delivery import Released
from autopost_runtime.config.load import ServiceConfig
from autopost_runtime.postgres.pool import open_database
from autopost_runtime.telemetry import metrics
from db.support.builders import Tenant
from db.support.publications import Publisher
from dispatcher.support.sample_claims import claim
from harness.databases import Database

RUN = RunId(uuid4())
LEASE = timedelta(minutes=5)
FACTS = PublicationFacts(media_type="photo", scheduled_at=1000.0)


@pytest.fixture
async def publisher(database: Database) -> Publisher:
    return await Publisher.create(await Tenant.create(database.pool))


@pytest.fixture
async def gateway(database: Database) -> AsyncIterator[Gateway]:
    config = ServiceConfig(database_url=database.url, database_role="autopost_dispatcher")
    async with open_database(config, "dispatcher") as opened:
        yield Gateway(opened)


@pytest.fixture(autouse=True)
def counted_from_zero() -> None:
    metrics.forget()


def scraped(name: str) -> dict[str, float]:
    """By labels, without those that are nought."""
    lines = [line for line in metrics.render().decode().splitlines() if line.startswith(f"{name}{{")]
    read = {line.partition("{")[2].partition("}")[0]: float(line.split()[-1]) for line in lines}
    return {labels: value for labels, value in read.items() if value}


async def claimed(gateway: Gateway, publisher: Publisher, *, together: bool) -> Claim:
    workspace = WorkspaceId(publisher.tenant.workspace)
    if together:
        [made] = (await gateway.claim_due([workspace], RUN, 10, 10, LEASE, timedelta(0))).claims
    else:
        [made] = (await gateway.claim_deliveries(workspace, RUN, 10, LEASE)).claims
    return made


async def commit(gateway: Gateway, *ended: FinishedDelivery) -> None:
    committer = Committer(gateway, run_id=RUN, pause=LEASE, disable_streak=3, committed=lambda *_: None)
    running = asyncio.create_task(committer.run())
    for one in ended:
        committer.put(one)
    async with asyncio.timeout(20):
        await committer.flush()
    running.cancel()


@pytest.mark.parametrize("together", [False, True])
async def test_what_was_published_is_counted_with_its_kind_its_duration_and_its_lateness(
    gateway: Gateway, publisher: Publisher, together: bool
) -> None:
    await publisher.begun(media_type="photo")
    made = await claimed(gateway, publisher, together=together)

    await commit(gateway, FinishedDelivery(made, Sent(provider_message_id="7"), seconds=0.2))

    assert scraped("delivery_post_scheduler_published_total") == {'media_type="photo"': 1}
    assert scraped("delivery_post_scheduler_errors_total") == {}
    assert scraped("delivery_post_scheduler_send_duration_seconds_count") == {'media_type="photo"': 1}
    assert "autopost_publication_lateness_seconds_count 1.0" in metrics.render().decode()


async def test_what_failed_is_counted_by_the_type_that_the_database_gives_its_code(
    gateway: Gateway, publisher: Publisher
) -> None:
    await publisher.begun()
    made = await claimed(gateway, publisher, together=False)
    failure = Failed.permanent(Scope.CHANNEL, "bot_kicked", "gone")

    await commit(gateway, FinishedDelivery(made, failure))

    assert scraped("delivery_post_scheduler_errors_total") == {'error_type="bot_not_in_channel"': 1}
    assert scraped("delivery_post_scheduler_published_total") == {}
    assert await publisher.tenant.db.fetchval("SELECT status FROM publications") == "failed"


async def test_a_post_counts_for_none_of_them(gateway: Gateway, publisher: Publisher) -> None:
    await publisher.tenant.enqueue("hello")
    made = await claimed(gateway, publisher, together=False)

    await commit(gateway, FinishedDelivery(made, Sent(provider_message_id="7")))

    assert made.publication is None
    assert "post_scheduler" not in "".join(scraped("delivery_post_scheduler_published_total"))


class Types:
    def __init__(self, error_type: str = "platform", *, away: bool = False) -> None:
        self.asked: list[str] = []
        self.error_type = error_type
        self.away = away

    async def publication_error_type(self, code: str) -> str:
        self.asked.append(code)
        if self.away:
            raise OSError
        return self.error_type


FAILED = Failed.transient(Scope.PLATFORM, "http_500")
ENDINGS: list[tuple[Outcome | Released, int, float | None]] = [
    (Sent(provider_message_id="7"), 1, 5.0),
    (FAILED, 1, 5.0),
    (FAILED, 2, None),
    (Released(), 1, None),
]


@pytest.mark.parametrize(("outcome", "attempt", "late"), ENDINGS)
async def test_only_the_first_call_is_late(outcome: Outcome | Released, attempt: int, late: float | None) -> None:
    ended = FinishedDelivery(claim(publication=FACTS, attempt=attempt, slot=1005.0), outcome)

    await PublicationMetrics(Types()).count([ended], ())

    text = metrics.render().decode()
    told = [
        line.split()[-1] for line in text.splitlines() if line.startswith("autopost_publication_lateness_seconds_sum")
    ]
    assert told == ([] if late is None else [str(late)])


@pytest.mark.parametrize(("error_type", "bugs"), [("content", 2), ("platform", 0)])
async def test_content_that_was_approved_and_is_refused_counts_as_a_bug(error_type: str, bugs: int) -> None:
    ended = [FinishedDelivery(claim(publication=FACTS), Failed.permanent(Scope.DELIVERY, "message_too_long"))] * 2

    await PublicationMetrics(Types(error_type)).count(ended, ())

    counted = "autopost_publications_approved_but_refused_total"
    lines = [line for line in metrics.render().decode().splitlines() if line.startswith(counted)]
    assert sum(float(line.split()[-1]) for line in lines) == bugs


async def test_a_stale_outcome_counts_for_nothing() -> None:
    ended = FinishedDelivery(claim(publication=FACTS), Sent(provider_message_id="7"))

    await PublicationMetrics(Types()).count([ended], {ended.claim.delivery_id})

    assert scraped("delivery_post_scheduler_published_total") == {}


async def test_a_code_is_asked_for_once_and_again_after_a_failure() -> None:
    ended = [FinishedDelivery(claim(publication=FACTS), FAILED)] * 2
    away, there = Types(away=True), Types()

    await PublicationMetrics(away).count(ended, ())
    await PublicationMetrics(there).count(ended, ())

    assert (len(away.asked), len(there.asked)) == (2, 1)
    assert scraped("delivery_post_scheduler_errors_total") == {'error_type="unknown"': 2, 'error_type="platform"': 2}
