"""`autopost verify` compares a publication with its events and its delivery, and names what was changed past them."""

import pytest
from db.support.builders import permanent, sent
from db.support.publications import Publisher
from db.support.verified import differences, tamper


@pytest.fixture
async def publisher(tenant) -> Publisher:
    return await Publisher.create(tenant)


async def published(publisher: Publisher) -> None:
    await publisher.begun()
    await publisher.tenant.commit(sent(await publisher.tenant.claim_one()))


async def test_lives_of_all_kinds_have_no_differences(publisher):
    tenant = publisher.tenant
    await publisher.draft("a draft")
    await publisher.scheduled("scheduled again and again")
    moved = await publisher.scheduled("moved")
    await publisher.schedule(moved)
    await publisher.begun("failed")
    await tenant.commit(permanent(await tenant.claim_one(), code="no_rights"))
    dropped = await publisher.scheduled("cancelled")
    await publisher.call("cancel_publication", dropped, await publisher.version(dropped), "bob", "not today")
    await publisher.due()
    publisher.channel = await tenant.channel()
    await published(publisher)

    assert await differences(tenant.db, tenant.workspace) == []


CHANGES = [
    ("UPDATE publications SET status = 'failed'", "publication", ("published, version 2", "failed, version 2")),
    ("UPDATE publications SET version = 9", "publication", ("published, version 2", "published, version 9")),
    (
        "DELETE FROM events WHERE action = 'publication_published'",
        "publication",
        ("publishing, version 2", "published, version 2"),
    ),
    ("DELETE FROM events WHERE action::text LIKE 'publication%'", "publication", ("none", "published, version 2")),
    ("DELETE FROM events WHERE action = 'publication_due'", "publication_move", ("scheduled", "publishing")),
    ("UPDATE publications SET published_message_id = '9'", "publication_delivery", ("sent", "published 9")),
    ("UPDATE publications SET channel_id = new_id()", "publication_delivery", ("sent", "published")),
    ("UPDATE publications SET status = 'paused', pause_code = 'missed'", "publication_delivery", ("sent", "paused")),
]


@pytest.mark.parametrize(("statement", "kind", "words"), CHANGES)
async def test_what_was_changed_past_the_log_is_named(publisher, statement, kind, words):
    tenant = publisher.tenant
    await published(publisher)

    await tamper(tenant.db, statement)

    found = {one.kind: (one.told or "", one.row or "") for one in await differences(tenant.db, tenant.workspace)}
    assert kind in found
    assert all(one.startswith(word) for one, word in zip(found[kind], words, strict=True))


async def test_a_life_that_is_forgotten_is_compared_with_its_delivery_alone(publisher):
    tenant = publisher.tenant
    await published(publisher)
    await tamper(tenant.db, "DELETE FROM events")
    await tamper(tenant.db, "UPDATE publications SET updated_at = updated_at - interval '1 year'")
    await tenant.enqueue("what is remembered")

    found = {one.kind for one in await differences(tenant.db, tenant.workspace)}

    assert not found & {"publication", "publication_move", "publication_delivery"}
