"""Messages of a chat: of the customer, and replies that were sent, in the order of the chat's numbers."""

import json

from db.support.builders import Tenant

CHAT = "7"


async def hear(tenant: Tenant, number: int) -> None:
    await tenant.db.execute(
        "INSERT INTO bot_inbox (workspace_id, provider, chat_id, provider_message_id, processed_at, update, seq)"
        " VALUES ($1, 'max', $2, $3, clock_timestamp(), $4, advance_chat($1, $2))",
        *(tenant.workspace, CHAT, f"mid.{number}", json.dumps({"message": {"body": {"text": f"in {number}"}}})),
    )


async def reply(tenant: Tenant, number: int, *texts: str) -> None:
    parts = [{"kind": "text", "text": text} for text in texts]
    await tenant.db.execute(
        "INSERT INTO bot_outbox (workspace_id, chat_id, inbound_provider_message_id, response_hash, response, sent_at,"
        " provider_message_id, seq) VALUES ($1, $2, $3, 'x', $4, clock_timestamp(), $5, advance_chat($1, $2))",
        *(tenant.workspace, CHAT, f"mid.{number}", json.dumps({"plan": {"parts": parts}}), f"out.{number}"),
    )


async def talk(tenant: Tenant) -> None:
    """Numbers 1 to 6."""
    for number in (1, 2, 3):
        await hear(tenant, number)
        await reply(tenant, number, f"out {number}")


async def texts(tenant: Tenant, after: int | None = None, before: int | None = None, limit: int = 3) -> list[str]:
    query = "SELECT body ->> 'text' AS text FROM chat_messages($1, $2, $3, $4, $5)"
    return [row["text"] for row in await tenant.db.fetch(query, tenant.workspace, CHAT, after, before, limit)]


async def changes(tenant: Tenant, after: int) -> list[tuple[int, str]]:
    rows = await tenant.db.fetch("SELECT * FROM chat_changes($1, $2, $3, 500)", tenant.workspace, CHAT, after)
    return [(row["seq"], row["kind"]) for row in rows]


async def test_messages_of_both_sides_are_read_after_or_before_a_number(tenant: Tenant) -> None:
    await talk(tenant)

    assert await texts(tenant) == ["out 3", "in 3", "out 2"]
    assert await texts(tenant, before=4) == ["in 2", "out 1", "in 1"]
    assert await texts(tenant, after=0) == ["in 1", "out 1", "in 2"]
    assert await texts(tenant, after=4) == ["in 3", "out 3"]
    assert await changes(tenant, 2) == [(number, "message") for number in (3, 4, 5, 6)]


async def test_a_reply_is_shown_with_the_text_of_its_parts_and_the_id_of_the_platform(tenant: Tenant) -> None:
    await hear(tenant, 1)
    await reply(tenant, 1, "first", "second")

    row = await tenant.db.fetchrow("SELECT body FROM chat_changes($1, $2, 1, 500)", tenant.workspace, CHAT)

    assert row is not None
    shown = json.loads(row["body"])
    assert (shown["direction"], shown["text"], shown["messageId"]) == ("out", "first\n\nsecond", "out.1")


async def test_a_reply_that_is_not_sent_is_not_shown(tenant: Tenant) -> None:
    await hear(tenant, 1)
    await tenant.db.execute(
        "INSERT INTO bot_outbox (workspace_id, chat_id, inbound_provider_message_id, response_hash)"
        " VALUES ($1, $2, 'mid.1', 'x')",
        *(tenant.workspace, CHAT),
    )

    assert await texts(tenant) == ["in 1"]
    assert await changes(tenant, 0) == [(1, "message")]


async def test_a_reader_further_behind_than_deleted_replies_reads_anew(tenant: Tenant) -> None:
    await talk(tenant)
    assert await tenant.db.fetchval("SELECT retain_bot_outbox(interval '0', 2)") == 2

    assert await changes(tenant, 3) == [(6, "resync")]
    assert await changes(tenant, 4) == [(5, "message"), (6, "message")]
