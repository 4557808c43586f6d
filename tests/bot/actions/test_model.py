"""Any interleaving of starts, updates and timeouts on two replicas equals a serial order of the rules."""

import asyncio
import random
from typing import Any
from uuid import UUID

import msgspec
import pytest
from autopost_bot.actions.write import PUBLISHED
from autopost_bot.gateway import ActionResult
from autopost_bot.stream.announce import ChatAnnouncer
from autopost_contracts.ids import EndpointId, WorkspaceId
from autopost_runtime.http.endpoint_cache import Endpoint
from bot.conftest import StartReplica
from bot.support.listener import listening
from bot.support.replicas import BEARER, CHAT, WORKSPACE, Replica
from harness.databases import Database
from harness.eventually import eventually

ENDPOINT = Endpoint(
    workspace_id=WorkspaceId(UUID(WORKSPACE)),
    endpoint_id=EndpointId(UUID("5f000000-0000-4000-8000-0000000000e3")),
    workspace_status="active",
    max_payload_bytes=1,
)
State = tuple[str, str | None] | None
"""Status and text; ``None`` before the first start."""


def model(state: State, call: str, text: str | None) -> tuple[str, State]:
    """The rules of the document. ``call`` is start, done or error; no text leaves the text as it is."""
    shown = text if text is not None else (state[1] if state else None)
    if call == "start":
        if state is None:
            return "created", ("processing", shown)
        if state[0] != "processing":
            return "finished", state
        return ("refreshed" if shown == state[1] else "changed"), ("processing", shown)
    if state is None:
        return "unknown", None
    if state[0] == "processing":
        return "completed", (call, shown)
    if state[0] != call:
        return "ignored", state
    return ("same" if shown == state[1] else "changed"), (call, shown)


@pytest.mark.parametrize("seed", range(3))
async def test_every_interleaving_equals_a_serial_order(
    start_replica: StartReplica, seeded_database: Database, seed: int
) -> None:
    rng = random.Random(seed)
    replicas = [await start_replica(), await start_replica()]
    results: list[tuple[str, str | None, ActionResult]] = []

    async def act(replica: Replica, action: str) -> None:
        call, text = rng.choice(["start", "start", "done", "error"]), rng.choice([None, None, "one", "two"])
        fields: dict[str, Any] = {"chat_id": CHAT, "action_id": action}
        if text is not None:
            fields["display_text"] = text
        gateway = replica.hub._gateway
        for _ in range(rng.randrange(300)):  # so that calls fall into many transactions
            await asyncio.sleep(0)
        if call == "start":
            result = await gateway.start_action(ENDPOINT, {**fields, "action_type": "summarize"})
        else:
            result = await gateway.update_action(ENDPOINT, {**fields, "status": call})
        if result.verdict in PUBLISHED:
            ChatAnnouncer(replica.hub, replica.bus).announce(ENDPOINT.workspace_id, CHAT, result.seq)
        results.append((call, text, result))

    async def expire(replica: Replica) -> None:
        expired = await seeded_database.pool.fetch(
            "SELECT chat FROM expire_bot_actions($1, interval '0', 3)", ENDPOINT.workspace_id
        )
        for row in expired:
            replica.bus.wake(replica.bus.topology.chat(ENDPOINT.workspace_id, row["chat"]))

    async with (
        listening(replicas[0].events(), headers=BEARER, after=0) as one,
        listening(replicas[1].events(), headers=BEARER, after=0) as two,
    ):
        await asyncio.gather(
            *(act(rng.choice(replicas), rng.choice("abcdef")) for _ in range(90)),
            *(expire(replicas[n]) for n in range(2)),
        )
        final = await seeded_database.pool.fetch("SELECT action_id, status, display_text, seq FROM bot_actions")
        head = await seeded_database.pool.fetchval("SELECT seq FROM bot_chats WHERE chat_id = $1", CHAT)
        for client in (one, two):
            await eventually(lambda client=client: client.last_id == str(head))
            assert client.ids == sorted(set(client.ids))
            assert dict(client.actions) == {row["action_id"]: row["status"] for row in final}

    expired = await seeded_database.pool.fetchval("SELECT count(*) FROM events WHERE action = 'bot_action_expired'")
    changes = [result for _, _, result in results if result.verdict in PUBLISHED]
    assert len(changes) + expired == head, "each real change took one number, and nothing else did"
    assert len({result.seq for result in changes}) == len(changes)
    for row in final:
        _check_action(row["action_id"], (row["status"], row["display_text"]), results)


def _check_action(
    action: str, final: tuple[str, str | None], results: list[tuple[str, str | None, ActionResult]]
) -> None:
    mine = [one for one in results if document(one[2]).get("actionId") == action]
    states: list[State] = [None]
    for call, text, result in sorted((one for one in mine if one[2].verdict in PUBLISHED), key=lambda one: one[2].seq):
        verdict, state = model(states[-1], call, text)
        if verdict != result.verdict:  # the watchdog came in between
            states.append(("error", states[-1][1] if states[-1] else None))
            verdict, state = model(states[-1], call, text)
        assert (verdict, state) == (result.verdict, _state(result))
        states.append(state)
    if states[-1] != final:
        assert final[0] == "error", "only the watchdog changes anything else"
        states.append(final)
    for call, text, result in mine:
        if result.verdict not in PUBLISHED:
            assert any(model(state, call, text) == (result.verdict, _state(result)) for state in states)
    ends = [state[0] for state in states if state and state[0] != "processing"]
    assert len(set(ends)) <= 1, "a final status changed"


def _state(result: ActionResult) -> State:
    return document(result)["status"], document(result)["displayText"]


def document(result: ActionResult) -> dict[str, Any]:
    return msgspec.json.decode(result.action, type=dict[str, Any])
