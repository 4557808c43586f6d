"""Tickets: read access to one chat, and to nothing else."""

import base64
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from autopost_bot.access.tickets import is_valid, make_ticket, read_ticket, utc_now
from autopost_bot.gateway import TicketEndpoint
from autopost_contracts.ids import EndpointId, WorkspaceId
from bot.conftest import StartReplica
from bot.support.listener import listening
from bot.support.replicas import BEARER, FOREIGN, WORKSPACE, Replica
from harness.databases import Database
from msgspec.structs import replace

NOW = datetime(2026, 11, 19, 12, tzinfo=UTC)
ENDPOINT = TicketEndpoint(
    workspace_id=WorkspaceId(UUID(WORKSPACE)),
    endpoint_id=EndpointId(UUID("5f000000-0000-4000-8000-0000000000e3")),
    workspace_status="active",
    max_payload_bytes=1,
    ticket_key=b"k" * 32,
)


def valid(ticket: str, endpoint: TicketEndpoint = ENDPOINT, chat: str = "7", now: datetime = NOW) -> bool:
    claims = read_ticket(ticket)
    return claims is not None and is_valid(claims, endpoint, chat, now)


def test_a_ticket_is_valid_for_its_chat_and_twelve_hours() -> None:
    ticket, expires = make_ticket(ENDPOINT, "7", NOW)

    assert expires == NOW + timedelta(hours=12)
    assert valid(ticket)
    assert valid(ticket, now=expires - timedelta(seconds=1))
    assert not valid(ticket, now=expires)
    assert not valid(ticket, chat="8")


def test_a_ticket_ends_with_the_secret_and_is_of_one_workspace() -> None:
    ticket, _ = make_ticket(ENDPOINT, "7", NOW)

    assert not valid(ticket, replace(ENDPOINT, ticket_key=b"n" * 32))
    assert not valid(ticket, replace(ENDPOINT, workspace_id=WorkspaceId(UUID(FOREIGN))))


def test_no_part_of_a_ticket_can_be_changed_or_left_out() -> None:
    ticket, _ = make_ticket(ENDPOINT, "7", NOW)
    text = base64.urlsafe_b64decode(ticket + "==").decode()
    for part, other in enumerate(("v2", str(UUID(int=1)), "a" * 26, str(int(NOW.timestamp()) + 10**6), "0" * 64)):
        parts = text.split(".")
        parts[part] = other
        assert not valid(base64.urlsafe_b64encode(".".join(parts).encode()).rstrip(b"=").decode())
    for length in range(0, len(ticket), 7):
        assert not valid(ticket[:length])
    for odd in ("", "ticket", "=" * 5, "A" * 10_000, "Ы", "v1.a.b.c.d"):
        assert not valid(odd)


async def test_a_ticket_reads_its_chat_and_writes_nothing(bot: Replica) -> None:
    ticket = await bot.ticket()
    await bot.start()

    async with listening(bot.events(), ticket=ticket, after=0) as client:
        await client.heard(1)
    listed = await bot.http.get(
        f"{bot.url}/api/chat/actions", params={"workspaceId": WORKSPACE, "chatId": "7", "ticket": ticket}
    )
    messages = await bot.http.get(f"{bot.url}/api/chats/7/messages", params={"ticket": ticket})

    assert (listed.status_code, len(listed.json()), messages.status_code) == (200, 1, 200)
    for call in ("chat/actions/start", "chat/actions/update", "chats/7/tickets"):
        assert (await bot.http.post(f"{bot.url}/api/{call}", params={"ticket": ticket}, json={})).status_code == 401


@pytest.mark.parametrize(
    "odd", ["another chat", "another workspace", "expired", "truncated", "disabled endpoint", "new secret"]
)
async def test_a_ticket_that_is_not_for_this_is_refused(
    bot: Replica, start_replica: StartReplica, seeded_database: Database, odd: str
) -> None:
    ticket, chat, workspace = await bot.ticket(), "7", WORKSPACE
    match odd:
        case "another chat":
            chat = "8"
        case "another workspace":
            workspace = FOREIGN
        case "expired":
            endpoint = await bot.hub._gateway.chat_ticket_key(ENDPOINT.endpoint_id)
            assert endpoint is not None
            assert make_ticket(endpoint, chat, utc_now())[0][:60] == ticket[:60], "made as the service makes it"
            ticket, _ = make_ticket(endpoint, chat, utc_now() - timedelta(hours=12, seconds=1))
        case "truncated":
            ticket = ticket[:-3]
        case "disabled endpoint":
            await seeded_database.pool.execute("UPDATE workspace_endpoints SET enabled = false")
        case "new secret":
            await seeded_database.pool.execute(
                "UPDATE workspace_endpoints SET secret_hash = encode(sha256('new'), 'hex') WHERE kind = 'bot_api'"
            )
    bot = await start_replica()  # which has cached nothing

    listed = await bot.http.get(
        f"{bot.url}/api/chat/actions", params={"workspaceId": workspace, "chatId": chat, "ticket": ticket}
    )

    assert listed.status_code == 401
    assert ticket not in listed.text
    if odd != "another workspace":
        stream = await bot.http.get(bot.events(chat), params={"ticket": ticket})
        assert stream.status_code == 401


async def test_a_ticket_is_not_cached_by_anybody(bot: Replica) -> None:
    answer = await bot.http.post(f"{bot.url}/api/chats/7/tickets", headers=BEARER)

    assert (answer.status_code, answer.headers["Cache-Control"]) == (201, "no-store")
    assert set(answer.json()) == {"ticket", "expiresAt"}
