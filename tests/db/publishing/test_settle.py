"""A publication follows its delivery in the transaction that moves it, and what fails is told to the right people."""

import asyncio
import json
from datetime import timedelta

import asyncpg
import msgspec
import pytest
from autopost_contracts.commands import PublishPostFailed
from db.support.builders import permanent, sent, transient
from db.support.publications import Publisher

ENDINGS = [
    # code, scope, status, pause_code, error_type, whether a dead letter is published
    ("bot_kicked", "channel", "failed", None, "bot_not_in_channel", True),
    ("chat_not_found", "channel", "failed", None, "bot_not_in_channel", True),
    ("no_rights", "channel", "failed", None, "channel_restricted", True),
    ("media_missing_origin", "delivery", "paused", "file_id_expired", "file_id_expired", True),
    ("message_too_long", "delivery", "failed", None, "content", True),
    ("buttons_invalid", "delivery", "failed", None, "content", True),
]
RETRIED = [(transient, "rate_limited", "rate_limit"), (transient, "http_500", "platform")]
RETRIED += [(permanent, "album_refused", "media_group")]


@pytest.fixture
async def publisher(tenant) -> Publisher:
    return await Publisher.create(tenant)


@pytest.mark.parametrize(("code", "scope", "status", "pause_code", "error_type", "has_letter"), ENDINGS)
async def test_a_refusal_ends_it_as_the_table_of_errors_says(
    publisher, code, scope, status, pause_code, error_type, has_letter
):
    publication = await publisher.begun(owner="mailto:ann@example.com")

    await publisher.tenant.commit(permanent(await publisher.tenant.claim_one(), scope, code=code, message="no"))

    shown = await publisher.show(publication)
    assert (shown["status"], shown["pause_code"], shown["last_error"]["error_type"]) == (status, pause_code, error_type)
    letters = await publisher.commands("delivery.commands.dlq")
    assert len(letters) == has_letter
    assert letters[0]["msg_id"] == f"dlq:publish:{publication}:2:1"
    assert letters[0]["payload"]["error_type"] == error_type
    [notice] = await publisher.tenant.db.fetch("SELECT * FROM publication_notices")
    assert (notice["version"], notice["code"]) == (2, error_type)


@pytest.mark.parametrize(("failure", "code", "error_type"), RETRIED)
async def test_three_retries_after_one_two_and_four_seconds_then_it_has_failed(publisher, failure, code, error_type):
    tenant = publisher.tenant
    publication = await publisher.begun()
    delivery = await publisher.delivery(publication)
    waits = []

    for _ in range(4):
        [claim] = await claim_again(publisher, delivery)
        before = await tenant.db.fetchval("SELECT clock_timestamp()")
        [verdict] = await tenant.commit(failure(claim, code=code, message="item #2"))
        if verdict["next_retry_at"]:
            waits.append(round((verdict["next_retry_at"] - before).total_seconds()))

    assert waits == [1, 2, 4]
    shown = await publisher.show(publication)
    assert (shown["status"], shown["last_error"]["error_type"]) == ("failed", error_type)
    [letter] = await publisher.commands("delivery.commands.dlq")
    assert letter["payload"]["attempts"] == 4
    assert letter["payload"]["error"]["message"] == "item #2"


async def test_an_album_of_a_post_that_is_refused_is_not_sent_again(publisher):
    await publisher.tenant.enqueue("hello")
    claim = await publisher.tenant.claim_one()

    [verdict] = await publisher.tenant.commit(permanent(claim, code="album_refused"))

    assert verdict["status"] == "failed_permanent"


async def claim_again(publisher, delivery):
    tenant = publisher.tenant
    await tenant.db.execute(
        "UPDATE deliveries SET next_retry_at = clock_timestamp() - interval '1 second' "
        "WHERE delivery_id = $1 AND status = 'retry'",
        delivery,
    )
    await tenant.set_channel(publisher.channel, "next_allowed_at = NULL")
    return await tenant.claim()


async def test_a_wait_that_the_platform_asks_for_is_never_shortened(publisher):
    await publisher.begun()
    claim = await publisher.tenant.claim_one()
    before = await publisher.tenant.db.fetchval("SELECT clock_timestamp()")

    [verdict] = await publisher.tenant.commit(
        transient(claim, "platform", code="rate_limited", retry_after_ms=3_600_000)
    )

    assert verdict["next_retry_at"] - before >= timedelta(hours=1)


async def test_a_call_without_an_answer_is_never_repeated_by_itself(publisher):
    tenant = publisher.tenant
    publication = await publisher.begun()
    await tenant.commit(transient(await tenant.claim_one(), ambiguous=True))

    shown = await publisher.show(publication)
    assert (shown["status"], shown["pause_code"]) == ("paused", "unconfirmed")
    assert await publisher.call("retry_publication", publication, 2, "bob", "?") == {
        "verdict": "unconfirmed",
        "publication": shown,
    }
    edited = await publisher.call("edit_publication", publication, 2, "{}", "ann")
    assert edited["verdict"] == "not_editable"


@pytest.mark.parametrize(("decision", "status"), [("sent", "published"), ("resend", "publishing")])
async def test_a_person_decides_what_became_of_it(publisher, decision, status):
    tenant = publisher.tenant
    publication = await publisher.begun()
    await tenant.commit(transient(await tenant.claim_one(), ambiguous=True))

    arguments = (publication, 2, decision, "bob", "looked", "99")
    answer = await publisher.call("resolve_publication", *arguments)

    assert answer["publication"]["status"] == status
    if decision == "sent":
        assert answer["publication"]["published_message_id"] == "99"


async def test_an_expired_lease_is_unconfirmed(publisher):
    tenant = publisher.tenant
    publication = await publisher.begun()
    claim = await tenant.claim_one()

    await tenant.recover(now=claim["sending_lease_until"] + timedelta(seconds=1))

    assert (await publisher.show(publication))["pause_code"] == "unconfirmed"


async def test_a_retry_is_the_same_delivery_with_a_new_budget(publisher, operator):
    tenant = publisher.tenant
    publication = await publisher.begun()
    delivery = await publisher.delivery(publication)
    await tenant.commit(permanent(await tenant.claim_one(), code="media_missing_origin"))

    answer = await publisher.call("retry_publication", publication, 2, "bob", "the file is back")
    assert (answer["verdict"], answer["publication"]["status"]) == ("retried", "publishing")
    await tenant.set_channel(publisher.channel, "next_allowed_at = NULL")
    claim = await tenant.claim_one()
    assert (claim["delivery_id"], claim["attempt"]) == (delivery, 2)
    await tenant.commit(sent(claim))
    assert await publisher.status(publication) == "published"


async def test_the_queue_command_and_the_publication_agree(publisher, operator):
    tenant = publisher.tenant
    publication = await publisher.begun()
    delivery = await publisher.delivery(publication)
    await tenant.commit(permanent(await tenant.claim_one(), code="message_too_long"))
    assert await publisher.status(publication) == "failed"

    assert (await operator.requeue(delivery))[delivery]["verdict"] == "requeued"

    assert await publisher.status(publication) == "publishing"


async def test_a_dead_letter_has_no_text_no_token_and_no_file(publisher):
    secret = "123456789:AAF-secret-secret-secret-secret-sec"
    await publisher.begun("a very secret price")
    await publisher.tenant.commit(
        permanent(await publisher.tenant.claim_one(), code="message_too_long", message=f"https://x/bot{secret}/send")
    )

    [letter] = await publisher.commands("delivery.commands.dlq")
    msgspec.convert(letter["payload"], PublishPostFailed)
    assert set(letter["payload"]) == {
        *("type", "workspace_id", "publication_id", "version", "channel_id", "delivery_id", "error_type", "error"),
        *("attempts", "scheduled_at", "first_attempt_at", "last_attempt_at", "trace_id"),
    }
    assert secret not in json.dumps(letter["payload"])
    assert "secret price" not in json.dumps(letter["payload"])


async def test_the_owner_is_told_once_per_version_and_code(publisher):
    tenant = publisher.tenant
    publication = await publisher.begun(owner="mailto:ann@shop.example")
    for _ in range(2):
        [claim] = await claim_again(publisher, await publisher.delivery(publication))
        await tenant.commit(permanent(claim, code="message_too_long"))
        await publisher.call("retry_publication", publication, 2, "bob", "again")

    assert await tenant.count("publication_notices") == 1


class TestCancel:
    async def test_before_it_has_a_delivery(self, publisher):
        for publication in (
            await publisher.draft("a"),
            await publisher.scheduled("b"),
        ):
            assert await publisher.cancel(publication) == "cancelled"
            assert await publisher.cancel(publication) == "already"
        assert (await publisher.due())["due"] == []

    async def test_between_its_command_and_its_delivery(self, publisher):
        publication = await publisher.scheduled()
        await publisher.due()

        assert await publisher.cancel(publication) == "cancelled"
        assert await publisher.begin(publication, 2) == "stale"
        assert await publisher.tenant.claim() == []

    async def test_while_its_delivery_waits(self, publisher):
        publication = await publisher.begun()

        assert await publisher.cancel(publication) == "cancelled"

        assert await publisher.tenant.claim() == []
        shown = await publisher.show(publication)
        assert (shown["status"], shown["changed_by"], shown["cancel_reason"]) == ("cancelled", "ann", "a wrong price")
        assert (await publisher.told()).count("cancelled") == 1

    async def test_while_it_is_being_sent(self, publisher):
        publication = await publisher.begun()
        claim = await publisher.tenant.claim_one()

        assert await publisher.cancel(publication) == "too_late"

        await publisher.tenant.commit(sent(claim))
        assert await publisher.status(publication) == "published"

    async def test_after_it_was_not_answered(self, publisher):
        publication = await publisher.begun()
        await publisher.tenant.commit(transient(await publisher.tenant.claim_one(), ambiguous=True))

        assert await publisher.cancel(publication) == "perhaps_sent"
        assert await publisher.status(publication) == "cancelled"

    async def test_after_it_failed(self, publisher, operator):
        publication = await publisher.begun()
        delivery = await publisher.delivery(publication)
        await publisher.tenant.commit(permanent(await publisher.tenant.claim_one()))

        assert await publisher.cancel(publication) == "cancelled"
        assert (await operator.requeue(delivery))[delivery]["verdict"] == "publication_changed"
        with pytest.raises(asyncpg.PostgresError, match=r"was changed|cannot become"):
            await publisher.tenant.set_delivery(delivery, "status = 'retry', next_retry_at = now()")


async def test_a_thousand_cancels_and_commits_at_once_meet_no_deadlock(publisher):
    """cancelled: no call. too_late, already: one."""
    tenant = publisher.tenant
    publications = await publisher.begun_many(1000)
    await tenant.db.execute("UPDATE delivery_queue SET slow = false")  # all of one channel in a few claims
    called, verdicts = [], {}

    async def send():
        while claims := await tenant.claim(20):
            called.extend(claim["delivery_id"] for claim in claims)
            await tenant.commit(*(sent(claim) for claim in claims), short=False)

    async def cancel(left):
        for publication in left:
            verdicts[publication] = await cancelled(publisher, publication)

    left = iter(publications)
    await asyncio.gather(send(), send(), *(cancel(left) for _ in range(8)))

    rows = await tenant.db.fetch("SELECT publication_id, delivery_id FROM publications WHERE delivery_id IS NOT NULL")
    assert len(called) == len(set(called))
    assert {row["publication_id"]: row["delivery_id"] in called for row in rows} == {
        publication: verdict != "cancelled" for publication, verdict in verdicts.items()
    }
    assert {"cancelled", "too_late"} <= set(verdicts.values()) <= {"cancelled", "too_late", "already"}


async def cancelled(publisher, publication):
    """Again while its delivery is being made, as the API does it."""
    for _ in range(5):
        try:
            return await publisher.cancel(publication)
        except asyncpg.SerializationError:
            continue
    raise AssertionError("always interrupted")
