"""The six values that the document of publications fixes."""

from datetime import timedelta

import msgspec
from autopost_contracts.subjects import Topology
from autopost_dispatcher.config import DispatcherConfig
from autopost_ingest.publications.assembly import HANDLERS
from db.support.publications import Publisher

SECOND = timedelta(seconds=1)


async def test_the_consumer_its_handlers_time_rates_and_retries_are_as_documented(tenant):
    publisher = await Publisher.create(tenant)
    delivery = await tenant.delivery(await publisher.delivery(await publisher.begun()))
    consumer = Topology("autopost").publish_commands
    timeout = next(f.default for f in msgspec.structs.fields(DispatcherConfig) if f.name == "provider_timeout")
    closed, per_token = await tenant.db.fetchrow(
        "SELECT publication_step('0'), (SELECT column_default::numeric FROM information_schema.columns "
        "WHERE (table_name, column_name) = ('platform_limits', 'rate_rps'))"
    )
    waits = await tenant.db.fetch(
        "SELECT retry_delay(n, NULL, NULL, 'publication', 0.5) FROM generate_series(1, 3) AS n"
    )

    assert (consumer.durable, consumer.filter_subject) == ("post-scheduler-worker", "delivery.commands")
    assert HANDLERS == 4
    assert timeout == 30 * SECOND
    assert 3 * SECOND <= closed <= 3.2 * SECOND
    assert per_token == 27
    assert delivery["max_attempts"] == 1 + 3
    assert [wait[0] / SECOND for wait in waits] == [1, 2, 4]
