"""From due to the queue: a command per publication, one delivery however often it comes, with NATS and without."""

import asyncio
import signal
from datetime import timedelta
from hashlib import sha256
from uuid import UUID

import msgspec
import pytest
from autopost_contracts.commands import PublishPost, PublishPostFailed
from autopost_contracts.subjects import Topology
from autopost_ingest.errors import InvalidPost
from autopost_ingest.publications.creative import CreativeDraft, media_kind, request_of
from autopost_runtime.nats.bus import Done, Later, Message, Poison, ensure_streams
from harness.eventually import eventually

SOON = timedelta(milliseconds=300)


async def test_a_publication_starts_at_its_time_and_not_at_the_next_poll(start_replica, tenant):
    replica = await start_replica()
    channel = await tenant.channel()

    publication = await replica.scheduled(channel, SOON)

    await eventually(lambda: replica.begun(publication))
    shown = await replica.show(publication)
    [row] = await tenant.deliveries()
    assert (row["delivery_id"], row["policy"], row["max_attempts"]) == (UUID(shown["delivery_id"]), "publication", 4)
    assert row["created_at"] >= await tenant.db.fetchval(
        "SELECT scheduled_at FROM publications WHERE publication_id = $1", publication
    )
    [command] = await tenant.db.fetch("SELECT * FROM command_outbox")
    assert command["published_at"] is not None
    rendered = await tenant.db.fetchval("SELECT rendered_text FROM renderings")
    assert rendered == "<b>Sale</b> &amp; more"


async def test_without_nats_a_publication_starts_all_the_same(start_replica, tenant):
    replica = await start_replica(nats=False)
    channel = await tenant.channel()

    publication = await replica.scheduled(channel)
    replica.loop.wake()

    await eventually(lambda: replica.begun(publication))


async def test_a_nats_that_hangs_delays_what_is_due_by_one_answer_and_not_by_one_for_each(
    start_replica, tenant, own_nats, nats_namespace
):
    await ensure_streams(own_nats.url, Topology(nats_namespace))
    replica = await start_replica(run=False, server=own_nats.url)
    made = [await replica.scheduled(channel) for channel in await tenant.channels(6)]
    own_nats.process.send(signal.SIGSTOP)
    try:
        async with asyncio.timeout(4):
            await replica.loop.round()
    finally:
        own_nats.process.send(signal.SIGCONT)

    assert [await replica.begun(one) for one in made] == [True] * 6


async def test_of_replicas_with_the_same_commands_one_begins(start_replica, tenant):
    replicas = [await start_replica() for _ in range(2)]
    channels = await tenant.channels(8)

    publications = [await replicas[0].scheduled(channel) for channel in channels]

    for publication in publications:
        await eventually(lambda publication=publication: replicas[0].begun(publication))
    for nth in range(20):
        await replicas[nth % 2].command(publications[0], f"again {nth}")
    await eventually(lambda: settled(replicas[0]))
    assert await tenant.count("deliveries") == 8


async def settled(replica) -> bool:
    """All commands are handled."""
    topology = replica.bus.topology
    info = await replica.bus._connection.js.consumer_info(topology.stream("COMMANDS"), "post-scheduler-worker")
    return info.num_pending == 0 and info.num_ack_pending == 0


async def test_a_lost_command_is_found_in_the_table(start_replica, tenant):
    replica = await start_replica(run=False)
    channel = await tenant.channel()
    publication = await replica.scheduled(channel)
    await replica.gateway.due_publications(10)  # and the process dies here
    await tenant.db.execute("UPDATE publications SET updated_at = updated_at - interval '1 minute'")

    await replica.loop.round()

    assert await replica.begun(publication)


async def test_one_publication_that_cannot_begin_stops_no_other(start_replica, tenant):
    replica = await start_replica(nats=False, run=False)
    channel = await tenant.channel()
    broken, sound = await replica.scheduled(channel), await replica.scheduled(channel, text="sound")
    await tenant.db.execute(
        "UPDATE publications SET creative_draft = '{\"nonsense\": 1}' WHERE publication_id = $1", broken
    )

    await replica.loop.round()

    assert (await replica.begun(sound), await replica.begun(broken)) == (True, False)


async def test_a_creative_whose_file_is_gone_fails_with_words(start_replica, tenant):
    replica = await start_replica(nats=False, run=False)
    channel = await tenant.channel()
    publication = await replica.scheduled(channel)
    blob = "sha256:" + "0" * 64
    await tenant.db.execute(
        "UPDATE publications SET creative_draft = $2 WHERE publication_id = $1",
        *(publication, msgspec.json.encode({"media": [{"type": "photo", "blob_ref": blob}]}).decode()),
    )

    await replica.loop.round()

    shown = await replica.show(publication)
    assert (shown["status"], shown["last_error"]["error_type"]) == ("failed", "content")
    assert "blob_ref" in str(shown["last_error"])
    [letter] = await tenant.db.fetch(
        "SELECT msg_id, payload FROM command_outbox WHERE subject = 'delivery.commands.dlq'"
    )
    assert letter["msg_id"] == f"dlq:publish:{publication}:{shown['version']}:0"
    told = msgspec.json.decode(letter["payload"], type=PublishPostFailed)
    assert (told.delivery_id, told.error_type, told.attempts) == (None, "content", 0)


NONSENSE = [b"", b"{", b"[]", b'{"type": "other"}', b"\xff\xfe", b"{" * 1000]


@pytest.mark.parametrize("payload", NONSENSE)
async def test_a_message_that_is_no_command_is_a_dead_letter_and_not_delivered_again(start_replica, payload):
    replica = await start_replica(run=False)

    verdicts = [await replica.handler.handle(Message("delivery.commands", payload, {}, 1)) for _ in range(2)]

    assert verdicts == [Poison("unreadable_command")] * 2
    topology = replica.bus.topology
    stream = await replica.bus._connection.js.stream_info(topology.stream("COMMANDS"))
    assert stream.state.messages == 1
    letter = await replica.bus._connection.js.get_last_msg(topology.stream("COMMANDS"), topology.dead_commands)
    assert msgspec.json.decode(letter.data) == {
        "type": "unreadable_command.v1",
        "error_type": "unreadable_command",
        "size": len(payload),
        "sha256": sha256(payload).hexdigest(),
    }


async def test_a_message_whose_dead_letter_is_not_stored_comes_again(start_replica):
    replica = await start_replica(nats=False, run=False)

    assert isinstance(await replica.handler.handle(Message("delivery.commands", b"{", {}, 1)), Later)


async def test_nonsense_among_the_commands_keeps_no_publication_from_beginning(start_replica, tenant):
    replica = await start_replica()
    for payload in [*NONSENSE, b'{"type": "publish_post.v1", "workspace_id": "nobody"}', b"9" * 5000, b"[" * 100_000]:
        await replica.bus.publish(replica.bus.topology.commands, payload, msg_id=payload.decode("latin-1")[:20] or "-")
    channel = await tenant.channel()

    publication = await replica.scheduled(channel)

    await eventually(lambda: replica.begun(publication))
    await eventually(lambda: settled(replica))


async def test_a_command_for_nothing_is_done(start_replica, tenant):
    replica = await start_replica(run=False)
    command = PublishPost(workspace_id=tenant.workspace, publication_id=tenant.run_id, version=1)  # type: ignore[arg-type]

    assert await replica.handler.handle(Message("", msgspec.json.encode(command), {}, 1)) == Done()


def test_the_worker_has_the_documented_names_and_numbers():
    consumer = Topology().publish_commands

    assert (consumer.stream, consumer.durable, consumer.filter_subject) == (
        *("COMMANDS", "post-scheduler-worker"),
        "delivery.commands",
    )
    assert (consumer.acks, consumer.ack_wait) == (True, timedelta(seconds=30))


@pytest.mark.parametrize(
    ("media", "kind"),
    [
        ([], "text"),
        *([[one], one["type"]] for one in ({"type": kind, "file_id": "f"} for kind in ("photo", "video"))),
        ([{"type": "photo", "file_id": "a"}, {"type": "video", "file_id": "b"}], "media_group"),
    ],
)
def test_the_kind_of_a_creative_is_that_of_the_media_table(media, kind):
    assert media_kind(msgspec.convert({"media": media}, CreativeDraft)) == kind


def test_a_medium_has_one_source():
    for medium in ({"type": "photo"}, {"type": "photo", "file_id": "f", "blob_ref": "b"}):
        with pytest.raises(InvalidPost) as refused:
            request_of(msgspec.convert({"media": [medium]}, CreativeDraft))
        assert refused.value.field == "creative_draft.media[0]"


def test_more_than_ten_media_are_refused():
    with pytest.raises(msgspec.ValidationError, match="length"):
        msgspec.convert({"media": [{"type": "photo", "file_id": "f"}] * 11}, CreativeDraft)


async def test_rounds_of_many_replicas_at_once_begin_each_once(start_replica, tenant):
    replicas = [await start_replica(nats=False, run=False) for _ in range(3)]
    channel = await tenant.channel()
    for nth in range(20):
        await replicas[0].scheduled(channel, text=f"ad {nth}")

    await asyncio.gather(*(replica.loop.round() for replica in replicas))

    assert await tenant.count("deliveries") == 20
