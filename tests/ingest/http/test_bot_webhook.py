"""The webhook of MAX: what is stored, under which key, and that it answers 200 wherever something was stored."""

import asyncio
import json
import random
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from autopost_ingest.request.bot_update import InvalidUpdate, read_update
from harness import simulator_process
from harness.databases import Database
from harness.eventually import eventually
from ingest.support.ingest_client import SHOP_WORKSPACE, TABLES
from ingest.support.ingest_server import RawIngestClient, opened

SECRET = "shop-bot-secret-for-development"
WAKEUP = f"autopost.wakeup.bot.{SHOP_WORKSPACE}"
EVENTS = "SELECT array_agg(action::text) FROM events"


def message(mid: str = "mid.1", chat: int = 7, **body: Any) -> dict[str, Any]:
    return {
        "update_type": "message_created",
        "timestamp": 1,
        "message": {
            "sender": {"user_id": 9},
            "recipient": {"chat_id": chat, "chat_type": "dialog", "user_id": 100},
            "body": {"mid": mid, "seq": 116327994376978687, "text": "hi"} | body,
        },
    }


def callback(number: str = "c1", at: int = 1) -> dict[str, Any]:
    told = {"callback_id": number, "user": {"user_id": 9}, "payload": "p", "timestamp": at}
    return {"update_type": "message_callback", "timestamp": 1, "callback": told, "message": message()["message"]}


STARTED = {"update_type": "bot_started", "timestamp": 5, "chat_id": 7, "user": {"user_id": 9}, "user_id": 9}


class Hook:
    def __init__(self, client: RawIngestClient) -> None:
        self.client = client

    async def post(self, update: Any, secret: str | None = SECRET) -> httpx.Response:
        content = update if isinstance(update, bytes) else json.dumps(update).encode()
        headers = {"Content-Type": "application/json"} | ({"X-Max-Bot-Api-Secret": secret} if secret else {})
        return await self.client.http.post(f"{self.client.url}/v1/bot/max", headers=headers, content=content)

    async def inbox(self) -> list[tuple[str, str, str, bool]]:
        rows = await self.client.sql(
            "SELECT jsonb_agg(jsonb_build_array(chat_id, provider_message_id, kind, processed_at IS NULL) ORDER BY ts) "
            "FROM bot_inbox"
        )
        return [tuple(row) for row in json.loads(rows or "[]")]


BOT = (
    "INSERT INTO bot_settings (workspace_id, auth_ref, rate_group) "
    "SELECT workspace_id, auth_ref, auth_ref FROM credential_bindings WHERE platform = 'max' ON CONFLICT DO NOTHING"
)


@pytest.fixture
async def hook(seeded_database: Database) -> AsyncIterator[Hook]:
    await seeded_database.pool.execute(BOT)
    async with opened(seeded_database) as client:
        yield Hook(client)


@pytest.mark.parametrize(
    ("update", "row"),
    [
        (message("mid.5"), ("7", "mid.5", "message_created", True)),
        (callback("c9"), ("7", "cb:c9:1", "message_callback", True)),
        (callback("c9") | {"message": None}, ("user:9", "cb:c9:1", "message_callback", True)),
        (STARTED, ("7", "start:7:5", "bot_started", True)),
    ],
    ids=["a message", "a button", "a button of a message that is gone", "a start"],
)
async def test_what_is_to_be_answered_is_stored_under_its_key_and_wakes_the_bot(
    hook: Hook, update: dict[str, Any], row: tuple[str, str, str, bool]
) -> None:
    answer = await hook.post(update)

    assert answer.status_code == 200
    assert await hook.inbox() == [row]
    assert json.loads(await hook.client.sql("SELECT update FROM bot_inbox")) == update
    assert await hook.client.sql("SELECT workspace_id FROM bot_inbox") == SHOP_WORKSPACE
    assert hook.client.ear.heard == [WAKEUP]


@pytest.mark.parametrize(
    "update",
    [
        message() | {"update_type": "message_edited"},
        {"update_type": "bot_stopped", "timestamp": 1, "chat_id": 7},
        {"update_type": "invented_tomorrow", "timestamp": 1, "anything": [1]},
        {"update_type": 5},
        {"update_type": "message_created", "message": None},
        {"update_type": "message_callback", "callback": []},
        {},
    ],
)
async def test_an_update_that_is_unknown_or_of_no_use_is_stored_once_and_answered_200(
    hook: Hook, update: dict[str, Any]
) -> None:
    answers = [await hook.post(update) for _ in range(2)]

    assert [answer.status_code for answer in answers] == [200, 200]
    assert len(await hook.inbox()) == 1


async def test_what_nobody_answers_counts_as_done_and_wakes_nobody(hook: Hook) -> None:
    await hook.post({"update_type": "bot_stopped", "timestamp": 1, "chat_id": 7})

    assert [row[3] for row in await hook.inbox()] == [False]
    assert await hook.client.sql("SELECT coalesce(sum(unanswered), 0) FROM bot_counts()") == 0
    assert hook.client.ear.heard == []


async def test_two_presses_on_one_keyboard_are_two_updates_and_each_is_one(hook: Hook) -> None:
    """The callback id names the keyboard, not the press."""
    answers = [await hook.post(callback("kbd", at)) for at in (1_000, 2_000, 1_000)]

    assert [answer.json()["status"] for answer in answers] == ["stored", "stored", "duplicate"]
    assert [row[1] for row in await hook.inbox()] == ["cb:kbd:1000", "cb:kbd:2000"]


async def test_a_press_on_a_message_that_is_gone_belongs_to_the_same_dialog(hook: Hook) -> None:
    await hook.post(message())

    await hook.post(callback() | {"message": None})

    assert [row[0] for row in await hook.inbox()] == ["7", "7"]


@pytest.mark.parametrize(
    ("update", "stored"),
    [
        (message(), ["9", "dialog", 1, "116327994376978687"]),
        (callback(at=3), ["9", "dialog", 3, None]),
        (callback(at=3) | {"message": None}, ["9", None, 3, None]),
        (STARTED, ["9", "dialog", 5, None]),
        (message(seq=2**63 + 5), ["9", "dialog", 1, "9223372036854775813"]),
        (message(seq="12x"), ["9", "dialog", 1, None]),
    ],
    ids=["a message", "a press", "a press without message", "a start", "a long number", "no number"],
)
async def test_who_wrote_and_when_is_stored_beside_the_update(
    hook: Hook, update: dict[str, Any], stored: list[Any]
) -> None:
    await hook.post(update)

    query = "SELECT jsonb_build_array(user_id, chat_type, provider_ts, provider_seq::text) FROM bot_inbox"
    assert json.loads(await hook.client.sql(query)) == stored


@pytest.mark.parametrize("at", [-1, 2**60, 1.5, "1", None, [1]])
async def test_a_time_that_is_none_is_replaced_by_the_arrival(hook: Hook, at: Any) -> None:
    update = message() | {"timestamp": at}
    update["message"]["timestamp"] = at

    answer = await hook.post(update)

    assert answer.status_code == 200
    assert await hook.client.sql("SELECT provider_ts > 1600000000000 FROM bot_inbox")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"sender": {"user_id": 5, "is_bot": True}}, "bot_sender"),
        ({"recipient": {"chat_id": -70, "chat_type": "chat"}}, "not_a_dialog"),
        ({"recipient": {"chat_id": -70, "chat_type": "channel"}, "sender": None}, "not_a_dialog"),
    ],
)
async def test_bots_and_groups_are_stored_and_nobody_is_woken(hook: Hook, change: dict[str, Any], reason: str) -> None:
    update = message()
    update["message"] |= change

    answer = await hook.post(update)

    assert (answer.status_code, answer.json()) == (200, {"status": "stored"})
    assert await hook.client.sql("SELECT ignored FROM bot_inbox") == reason
    assert hook.client.ear.heard == []


async def test_one_number_in_two_chats_is_two_updates(hook: Hook) -> None:
    answers = [await hook.post(message("mid.1", chat)) for chat in (7, 8)]

    assert [answer.json()["status"] for answer in answers] == ["stored", "stored"]


async def test_a_customer_who_floods_the_bot_is_answered_200_and_stops_nobody(hook: Hook) -> None:
    await hook.client.sql("UPDATE bot_settings SET chat_per_minute = 2")
    await hook.client.sql("UPDATE workspace_endpoints SET ingress_rps = 4 WHERE kind = 'bot_webhook'")

    flood = [await hook.post(message(f"mid.{number}", 7)) for number in range(20)]
    other = await hook.post(message("mid.1", 8))

    assert [answer.status_code for answer in flood] == [200] * 20
    assert (other.status_code, other.json()["status"]) == (200, "stored")
    assert hook.client.ear.heard == [WAKEUP] * 4  # of the third message the customer is told that it is one too many


async def test_an_edited_message_does_not_pass_for_the_first_one(hook: Hook) -> None:
    await hook.post(message() | {"update_type": "message_edited"})
    await hook.post(message())

    assert [row[2] for row in await hook.inbox()] == ["message_edited", "message_created"]


async def test_of_many_copies_one_is_stored_all_are_answered_200_and_the_bot_is_woken_once(hook: Hook) -> None:
    answers = await asyncio.gather(*(hook.post(message()) for _ in range(20)))

    assert [answer.status_code for answer in answers] == [200] * 20
    assert sorted(answer.json()["status"] for answer in answers) == ["duplicate"] * 19 + ["stored"]
    assert len(await hook.inbox()) == 1
    assert hook.client.ear.heard == [WAKEUP]
    assert set(await hook.client.sql(EVENTS)) == {"ingress_dedup_dropped"}


async def test_of_fifty_copies_at_two_processes_one_is_stored(hook: Hook, seeded_database: Database) -> None:
    async with opened(seeded_database) as second:
        hooks = (hook, Hook(second))
        answers = await asyncio.gather(*(hooks[number % 2].post(message()) for number in range(50)))

    assert [answer.status_code for answer in answers] == [200] * 50
    assert sorted(answer.json()["status"] for answer in answers) == ["duplicate"] * 49 + ["stored"]
    assert len(await hook.inbox()) == 1


async def test_an_edit_after_the_message_is_stored_and_nobody_answers_it(hook: Hook) -> None:
    await hook.post(message())
    await hook.post(message(text="hi!") | {"update_type": "message_edited"})

    ignored = await hook.client.sql("SELECT jsonb_agg(jsonb_build_array(kind, ignored) ORDER BY ts) FROM bot_inbox")
    assert json.loads(ignored) == [["message_created", None], ["message_edited", "unknown_kind"]]
    assert hook.client.ear.heard == [WAKEUP]


async def test_a_paused_workspace_stores_and_answers_200(hook: Hook) -> None:
    await hook.client.sql("UPDATE workspaces SET status = 'paused'")

    answer = await hook.post(message())

    assert answer.status_code == 200
    assert len(await hook.inbox()) == 1


async def test_a_disabled_workspace_is_403_and_keeps_nothing(hook: Hook) -> None:
    await hook.client.sql("UPDATE workspaces SET status = 'disabled'")

    answer = await hook.post(message())

    assert answer.status_code == 403
    assert await hook.inbox() == []


async def test_a_workspace_disabled_a_moment_ago_keeps_nothing(hook: Hook) -> None:
    """The endpoint is still remembered as it was; the database decides."""
    await hook.post(message("mid.1"))
    await hook.client.sql("UPDATE workspaces SET status = 'disabled'")

    answer = await hook.post(message("mid.2"))

    assert answer.status_code == 403
    assert len(await hook.inbox()) == 1


async def test_a_secret_disabled_a_moment_ago_keeps_nothing(hook: Hook) -> None:
    await hook.post(message("mid.1"))
    await hook.client.sql("UPDATE workspace_endpoints SET enabled = false")

    remembered = await hook.post(message("mid.2"))

    assert (remembered.status_code, len(await hook.inbox())) == (401, 1)


@pytest.mark.parametrize("secret", [None, "wrong", "shop-push-secret-for-development"])
async def test_a_wrong_secret_is_401_and_leaves_nothing(hook: Hook, secret: str | None) -> None:
    answer = await hook.post(message(), secret)

    assert answer.status_code == 401
    for table in (*TABLES, "bot_inbox", "events", "ingest_runs"):
        assert await hook.client.sql(f"SELECT count(*) FROM {table}") == 0


@pytest.mark.parametrize(
    ("body", "status"), [(b" " * 300_000, 413), (b"", 400), (b"{", 400), (b"[]", 400), (b"[" * 100_000, 400)]
)
async def test_what_is_no_update_is_refused_with_its_event(hook: Hook, body: bytes, status: int) -> None:
    answer = await hook.post(body)

    assert answer.status_code == status
    assert await hook.inbox() == []
    assert await hook.client.sql(EVENTS) == ["ingress_payload_rejected"]


@pytest.mark.parametrize(
    ("body", "stored"),
    [
        (rb'{"update_type": "x", "text": "a\u0000b"}', "a�b"),
        (rb'{"update_type": "x", "text": "\ud83d"}', "�"),
        (b'{"update_type": "x", "text": "a\x00\xff"}', "a��"),
        (b'{"update_type": "x", "text": "a", "text": "b"}', "b"),
        (b'{"update_type": "x", "text": NaN}', None),
        (b'{"update_type": "x", "text": 1e999}', "1e999"),
        (b'{"update_type": "x", "text": -1e-300}', "-1e-300"),
        (b'{"update_type": "x", "text": ' + b"9" * 5000 + b"}", "9" * 5000),
        (b'\xef\xbb\xbf{"update_type": "x", "text": "a"}', "a"),
    ],
)
async def test_a_customer_cannot_write_what_makes_the_webhook_fail(hook: Hook, body: bytes, stored: Any) -> None:
    answer = await hook.post(body)

    assert answer.status_code == 200
    assert json.loads(await hook.client.sql("SELECT update -> 'text' FROM bot_inbox")) == stored


async def test_keys_of_any_length_fit_into_the_index(hook: Hook) -> None:
    long = random.Random(1).randbytes(40_000).hex()  # an index would take what can be compressed

    answers = [await hook.post(message(text)) for text in (long, long + "0")]

    assert [answer.status_code for answer in answers] == [200, 200]
    assert len(await hook.inbox()) == 2


async def test_a_flood_is_told_to_come_back_and_loses_nothing(hook: Hook) -> None:
    await hook.client.sql("UPDATE workspace_endpoints SET ingress_rps = 0.01 WHERE kind = 'bot_webhook'")

    answers = [await hook.post(message(f"mid.{number}")) for number in range(3)]

    assert [answer.status_code for answer in answers] == [200, 429, 429]
    assert int(answers[1].headers["Retry-After"]) >= 1
    assert len(await hook.inbox()) == 1
    assert set(await hook.client.sql(EVENTS)) == {"ingress_rate_limited"}


@pytest.mark.parametrize("deep", [900, 5000])
def test_nesting_is_read_or_refused_and_nothing_else(deep: int) -> None:
    body = b'{"update_type": "x", "a": ' + b"[" * deep + b"]" * deep + b"}"

    try:
        assert read_update(body).kind == "x"
    except InvalidUpdate:
        assert deep > 300


@pytest.fixture
async def max_url() -> AsyncIterator[str]:
    async with simulator_process.running("--port", "0") as (_, url):
        yield url


class Customer:
    """A person in the simulated MAX whose bot tells ingest of everything."""

    def __init__(self, http: httpx.AsyncClient, url: str) -> None:
        self.http = http
        self.url = url

    async def subscribe(self, webhook: str) -> None:
        await self.control("tokens", {"platform": "max", "token": "max-token", "limits": []})
        answer = await self.http.post(
            f"{self.url}/max/subscriptions",
            headers={"Authorization": "max-token"},
            json={"url": webhook, "secret": SECRET},
        )
        answer.raise_for_status()

    async def control(self, path: str, body: dict[str, Any]) -> Any:
        answer = await self.http.post(f"{self.url}/_sim/{path}", json=body)
        answer.raise_for_status()
        return answer.json()

    async def deliveries(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = (await self.http.get(f"{self.url}/_sim/max/deliveries")).json()["deliveries"]
        return found


async def test_what_a_customer_writes_is_in_the_inbox_once(hook: Hook, max_url: str) -> None:
    customer = Customer(hook.client.http, max_url)
    await customer.subscribe(f"{hook.client.url}/v1/bot/max")

    await customer.control("max/customers/9/start", {})
    await customer.control("max/customers/9/write", {"text": "Где мой заказ?"})

    async def both() -> bool:
        return len(await hook.inbox()) == 2

    await eventually(both)
    assert [row[2] for row in await hook.inbox()] == ["bot_started", "message_created"]
    text = "SELECT update #>> '{message,body,text}' FROM bot_inbox WHERE kind = 'message_created'"
    assert await hook.client.sql(text) == "Где мой заказ?"
    assert [one["status"] for one in await customer.deliveries()] == [200, 200]


async def test_what_max_brings_again_after_a_failure_is_in_the_inbox_once(hook: Hook, max_url: str) -> None:
    """The first try meets a database that fails after the insert, the second one is stored."""
    customer = Customer(hook.client.http, max_url)
    await customer.control("max/settings", {"webhook_time_scale": 300.0})
    await customer.subscribe(f"{hook.client.url}/v1/bot/max")
    await hook.client.sql(
        "CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql "
        "AS $$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE = '55P03'; END $$"
    )
    await hook.client.sql("CREATE TRIGGER fail AFTER INSERT ON bot_inbox EXECUTE FUNCTION fail()")

    await customer.control("max/customers/9/write", {"text": "hi"})

    async def tried() -> bool:
        return bool(await customer.deliveries())

    await eventually(tried)
    assert await hook.inbox() == []
    await hook.client.sql("DROP TRIGGER fail ON bot_inbox")

    async def stored() -> bool:
        return len(await hook.inbox()) == 1

    await eventually(stored)
    statuses = [one["status"] for one in await customer.deliveries()]
    assert (set(statuses[:-1]), statuses[-1]) == ({503}, 200)
    assert hook.client.ear.heard == [WAKEUP]
