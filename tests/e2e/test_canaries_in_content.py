"""What senders, feeds, templates, customers, callers and platforms write turns up in no log, span, event or answer.

Each field carries a password, a token, a phone number and an e-mail address of its own. Only what a post is stored and
shown from may hold them: the tables in ``OWN``, and raw payloads in the object store, which are opened with a reason.
"""

import asyncio
import json
import sys
import time
from asyncio.subprocess import PIPE, create_subprocess_exec
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit
from uuid import UUID

import pytest
from autopost_cli.development import PUSH_SECRET, WORKSPACE
from autopost_cli.embedded.places import postgres_programs
from autopost_contracts.payload import MediaItem, PostButton, PostRequest, Routing
from autopost_ingest.pull.source_config import Fields
from harness.databases import Database
from harness.eventually import eventually
from harness.http_client import http_client
from ingest.support.pull_setup import Site
from msgspec import Struct

from e2e import canaries
from e2e.conftest import StartSystem
from e2e.system import System

OWN = (
    *("messages", "renderings", "staged_posts", "ingress_receipts", "pull_receipts", "pull_cursors"),
    *("templates", "pull_sources", "bot_inbox", "bot_outbox", "bot_state", "bot_logs", "bot_actions", "bot_chats"),
)
"""The tables that hold a post, a template, a source or a conversation itself."""

IN_TIME = timedelta(seconds=60)
FIELDS = (
    *("text", "html", "markdown", "caption", "link", "button text", "button url", "wrong button", "tag", "other tag"),
    *("source ref", "other ref", "media path", "media query", "media credentials", "file name", "variable"),
    *("unknown field", "unknown key", "header", "query", "hint", "channel", "parse mode"),
    *("template", "default", "broken template", "feed url", "feed title", "feed text", "feed link", "feed guid"),
    *(
        "feed author",
        "feed category",
        "feed enclosure",
        "feed refused",
        "bot text",
        "bot name",
        "bot payload",
        "bot attachment",
        "bot mid",
    ),
    *("media type", "blob ref", "file id", "attachment token", "media link", "channel tag"),
    *("moment", "preview", "silent", "protect", "wrong media", "wrong routing", "thread", "wrong tags", "meta"),
    *("feed content", "feed date", "feed media", "feed comments"),
    *("bot sender", "bot locale", "bot link", "bot url", "bot start", "bot time", "bot key", "bot callback"),
    *(f"{kind} {column}" for kind in ("api", "db") for column in Fields.__struct_fields__),
    *("api url", "api secret", "api next", "api body", "api page", "api redirect", "api refused"),
    *("db error", "db late error", "db cursor", "db value", "db refused", "dsn", "dsn away", "dsn wrong", "dsn option"),
    *("telegram answer", "max answer"),
    *(
        "customer refused",
        "customer mid",
        "customer unclear",
        "customer order",
        "customer reason",
        "customer other reason",
    ),
    *("action chat", "action id", "action type", "action text", "action payload", "action key", "action result"),
    *("action wrong chat", "action wrong id", "action wrong status", "action wrong workspace", "action unknown field"),
    *("action broken", "stream chat", "stream ticket", "stream after", "action query", "action secret"),
)
OF_A_POST = {
    "text": "text",
    "parse_mode": "parse mode",
    "links": "link",
    "media": "wrong media",
    "media.type": "media type",
    "media.url": "media query",
    "media.blob_ref": "blob ref",
    "media.file_id": "file id",
    "media.attachment_token": "attachment token",
    "media.caption": "caption",
    "buttons.text": "button text",
    "buttons.url": "button url",
    "tags": "tag",
    "routing": "wrong routing",
    "routing.channels": "channel",
    "routing.channel_tags": "channel tag",
    "routing.thread": "thread",
    "disable_preview": "preview",
    "silent": "silent",
    "protect": "protect",
    "source_ref": "source ref",
    "scheduled_for": "moment",
    "meta": "meta",
    "workspace_id": "hint",
}
"""Each field that a sender can write, and what it carries here."""
FED: set[str] = set()
"""What was written somewhere."""
BOT_SECRET = "demo-bot-secret-for-development"
API_SECRET = "shop-api-secret-for-development"
API_WORKSPACE = "5f000000-0000-4000-8000-000000000002"
CUSTOMER, PERSON = 7_700_112_233, 7_700_445_566
"""The numbers of a dialog and of its person: no redaction knows them, so they must not be written anywhere."""
PLAIN = "gooseberryjam"
"""A word of a customer."""
STATUS_TOKEN = "demo-status-token-for-development"


def number(field: str) -> int:
    FED.add(field)
    return FIELDS.index(field)


def password(field: str) -> str:
    return f"canarypass{number(field):02}word"


def token(field: str) -> str:
    return f"canarytoken{number(field):02}value"


def phone(field: str) -> str:
    return f"+7900123{number(field):04}"


def mail(field: str) -> str:
    return f"canary{number(field):02}@people.example"


def url(field: str, scheme: str = "https") -> str:
    return f"{scheme}://ann:{password(field)}@host.example/?access_token={token(field)}"


def words(field: str) -> str:
    """All four, as people paste them."""
    return f"{url(field)} {phone(field)} {mail(field)}"


def searched() -> dict[str, str]:
    return {
        f"{kind} of {field}": make(field)
        for field in FIELDS
        for kind, make in {"password": password, "token": token, "phone": phone, "mail": mail}.items()
    } | {"number of a chat": str(CUSTOMER), "number of a person": str(PERSON), "words of a customer": PLAIN}


async def post_everything(system: System, site: Site) -> list[dict[str, Any]]:
    """The ids of what was taken in."""
    anything: dict[str, Any] = {
        "text": words("text"),
        "links": [url("link")],
        "buttons": [{"text": words("button text")[:128], "url": url("button url")}],
        "tags": [mail("tag"), phone("tag"), url("tag")[:64]],
        "source_ref": words("source ref")[:256],
        "meta": {"title": words("variable")},
        "workspace_id": words("hint"),
    }
    away = site.put(f"/{token('media path')}", "", status=404) + f"?access_token={token('media query')}"
    answers = [
        await system.post(**anything),
        await system.post(**anything),  # a duplicate by its source_ref
        await system.post(**anything | {"source_ref": words("other ref")[:256], "tags": [mail("other tag")]}),
        await system.post(text=f'<a href="{url("html", "ftp")}">{words("html")}</a>', parse_mode="HTML"),
        await system.post(text=f"[a]({url('markdown', 'ftp')}) {words('markdown')}", parse_mode="Markdown"),
        await system.post(
            text="a", buttons=[{"text": "a", "url": url("wrong button").replace("host.example", "host")}]
        ),
        await system.post(
            text=words("caption"),
            media=[{"type": "photo", "url": away, "caption": words("caption")}],
            source_ref=words("source ref")[:200] + " away",
        ),
        await system.post(
            media=[{"type": "photo", "url": site.put(f"/{mail('file name')}.png", b"no picture"), "caption": "x"}]
        ),
        await system.post(media=[{"type": "photo", "url": url("media credentials")}]),
        await system.post(text="a", **{words("unknown field"): 1}),
        await system.post(text="a", meta={words("unknown key"): 10**30}),
        await system.post(text="a", parse_mode=words("parse mode")),
        await system.post(text="a", routing={"channels": [words("channel")]}),
        await system.post(text="a", routing={"channel_tags": [mail("channel tag"), url("channel tag")[:64]]}),
        await system.post(text="a", routing=words("wrong routing")),
        await system.post(text="a", routing={"thread": words("thread")}),
        await system.post(text="a", media=words("wrong media")),
        await system.post(text="a", tags=words("wrong tags")),
        await system.post(text="b", meta=words("meta")),
        await system.post(text="a", media=[{"type": words("media type"), "file_id": "1"}]),
        await system.post(text="a", media=[{"type": "photo", "blob_ref": words("blob ref")}]),
        await system.post(text="a", media=[{"type": "photo", "file_id": words("file id")}]),
        await system.post(text="a", media=[{"type": "photo", "attachment_token": words("attachment token")}]),
        await system.post(text="a", media=[{"type": "photo", "url": words("media link")}]),
        await system.post(text="a", scheduled_for=words("moment")),
        await system.post(text="a", disable_preview=words("preview")),
        await system.post(text="a", silent=words("silent")),
        await system.post(text="a", protect=words("protect")),
    ]
    endpoint = f"{system.places['ingest']}/v1/posts"
    right = {"Authorization": f"Bearer {PUSH_SECRET}"}
    for path, headers in (
        (f"{endpoint}?{words('query')}=1", right),
        (f"{endpoint}?q={words('query')}", right),
        (f"{endpoint}/{words('query')}", right),
        (endpoint, {"Authorization": f"Bearer {words('header')}", "webhook-id": words("header")}),
        (endpoint, right | {"X-Request-Id": words("header"), "User-Agent": words("header"), "Content-Encoding": "x"}),
    ):
        await system.http.post(path, headers=headers, json={"text": "a"})
    assert [answer.status_code for answer in answers[:3]] == [202, 200, 202]
    return [answer.json() for answer in answers if answer.status_code == 202]


async def bring_updates(system: System) -> None:
    body = {
        "mid": words("bot mid"),
        "text": words("bot text"),
        "attachments": [{"type": "contact", "payload": {"vcf_info": words("bot attachment")}}],
    }
    people = {"user_id": 9, "name": words("bot name"), "username": mail("bot name")}
    message = {"sender": people, "recipient": {"chat_id": 7, "chat_type": "dialog"}, "body": body}
    pressed = {"callback_id": words("bot payload"), "user": people, "payload": words("bot payload"), "timestamp": 1}
    of_more = {
        **message,
        "url": url("bot url"),
        "sender": {
            "user_id": 10,
            **{name: words("bot sender") for name in ("first_name", "last_name", "description", "avatar_url")},
        },
        "link": {"type": "forward", "message": {"mid": "2", "text": words("bot link")}},
        words("bot key"): 1,
    }
    updates: list[Any] = [
        {"update_type": "message_created", "timestamp": 2, "message": of_more, "user_locale": words("bot locale")},
        {"update_type": "bot_started", "timestamp": 3, "chat_id": 8, "user": people, "payload": words("bot start")},
        {"update_type": "bot_started", "timestamp": words("bot time"), "chat_id": 8, "user": people},
        {"update_type": "message_callback", "timestamp": 4, "callback": words("bot callback"), "message": message},
        {"update_type": "message_created", "timestamp": 1, "message": message},
        {"update_type": "message_callback", "timestamp": 1, "callback": pressed, "message": message},
        {"update_type": words("bot payload"), "timestamp": 1, "chat_id": words("bot payload")},
    ]
    hook = f"{system.places['ingest']}/v1/bot/max"
    for content in (*(json.dumps(update).encode() for update in updates for _ in range(2)), words("bot text").encode()):
        await system.http.post(hook, headers={"X-Max-Bot-Api-Secret": BOT_SECRET}, content=content)


async def talk_to_the_shop(system: System) -> None:
    """A return with its order number and its reason, then what the bot has no rule for."""
    hook = f"{system.places['ingest']}/v1/bot/max"
    refusal = {"status": 403, "description": f"no chat {CUSTOMER}: {words('customer refused')}"}
    await system.control("faults", {"platform": "max", "chat": CUSTOMER, "times": 1, "effect": refusal})
    said = (
        "возврат",
        f"12345 {words('customer order')}",
        words("customer reason"),
        *(f"{word} {PLAIN} {words('customer unclear')}" for word in ("фыва", "олдж", "ячсм", "итьб")),
        "возврат",
        words("customer other reason"),  # where a number is asked for
    )
    for place, text in enumerate(said):
        update = {
            "update_type": "message_created",
            "timestamp": int(time.time() * 1000) + place,
            "message": {
                "sender": {"user_id": PERSON, "name": "Ann"},
                "recipient": {"chat_id": CUSTOMER, "chat_type": "dialog"},
                "body": {"mid": f"{words('customer mid')} {place}", "text": text},
            },
        }
        taken = await system.http.post(hook, headers={"X-Max-Bot-Api-Secret": BOT_SECRET}, json=update)
        assert taken.status_code == 200


async def bring_actions(system: System) -> None:
    """Successful answers are the caller's own words, as the unknown id is; all others are searched."""
    api, right = system.stack.urls["bot"], {"Authorization": f"Bearer {API_SECRET}"}
    good = {
        "workspaceId": API_WORKSPACE,
        "chatId": words("action chat"),
        "actionId": words("action id"),
        "actionType": mail("action type"),
        "displayText": f"<b>{words('action text')}</b>",
        "payload": {"note": words("action payload"), words("action key"): [words("action key")]},
    }
    types = (phone("action type"), url("action type")[:64], f"access_token={token('action type')}")
    starts = [good, *({**good, "actionId": name, "actionType": name} for name in types)]
    ended = {**good, "actionId": "ended", "actionType": "summarize"}
    result = {**ended, "status": "error", "payload": {"error": words("action result")}}
    async with http_client(timeout=30) as own:
        for call, body in (*(("start", one) for one in [*starts, ended]), ("update", result)):
            assert (await own.post(f"{api}/api/chat/actions/{call}", headers=right, json=body)).is_success
        missing = {**result, "actionId": words("action wrong id")}
        assert (await own.post(f"{api}/api/chat/actions/update", headers=right, json=missing)).status_code == 404
    for call, changed in (
        ("start", {"chatId": words("action wrong chat") * 2}),
        ("start", {"actionId": words("action wrong id") * 2}),
        ("start", {"actionType": words("action type")}),
        ("start", {"displayText": [words("action text")]}),
        ("start", {"payload": words("action payload")}),
        ("start", {"workspaceId": words("action wrong workspace")}),
        ("update", {"status": words("action wrong status")}),
        ("update", {words("action unknown field"): 10**400}),
    ):
        answer = await system.http.post(f"{api}/api/chat/actions/{call}", headers=right, json=good | changed)
        assert 400 <= answer.status_code < 500
    await system.http.post(f"{api}/api/chat/actions/start", headers=right, content=words("action broken").encode())
    wrong = {"Authorization": f"Bearer {words('action secret')}"}
    await system.http.post(f"{api}/api/chat/actions/start", headers=wrong, json=good)
    chat = quote(words("stream chat"), safe="")
    for path, query in (
        (f"/api/chats/{chat}/messages", {"after": words("stream after")}),
        (f"/api/chats/{chat}/events", {"ticket": words("stream ticket")}),
        ("/api/chat/actions", {"workspaceId": words("action query"), "chatId": words("action query")}),
    ):
        headers = {} if "ticket" in query else right
        answer = await system.http.get(api + path, params=query, headers=headers)
        assert 400 <= answer.status_code < 500, path
    await system.database.execute("SELECT expire_bot_actions($1, '0 s', 100)", UUID(API_WORKSPACE))


async def add_feed(system: System, site: Site) -> None:
    item = "".join(
        f"<{name}>{words(field).replace('&', '&amp;')}</{name}>"
        for name, field in {
            "title": "feed title",
            "description": "feed text",
            "link": "feed link",
            "guid": "feed guid",
            "author": "feed author",
            "comments": "feed comments",
            "pubDate": "feed date",
            "content:encoded": "feed content",
            "category": "feed category",
        }.items()
    )
    picture = site.put(f"/{token('feed enclosure')}.png", "", status=404)
    enclosure = f'<enclosure url="{picture}" type="image/png" length="1"/>'
    guid = words("feed refused").replace("&", "&amp;")
    long = f"<item><guid>{guid}</guid><description>{'x' * 70_000}</description></item>"
    shown = f'<media:content url="{url("feed media").replace("&", "&amp;")}" type="image/png"/>'
    items = f"<item>{item}{enclosure}{shown}</item>{long}{long}"
    spaces = 'xmlns:content="http://purl.org/rss/1.0/modules/content/" xmlns:media="http://search.yahoo.com/mrss/"'
    feed = f'<rss version="2.0" {spaces}><channel><title>x</title>{items}</channel></rss>'
    site.put("/feed", feed)
    site.put("/gone", words("feed url"), status=404)
    for source, path in {"feed": "/feed", "gone": "/gone"}.items():
        await add_source(system, source, "rss", url=f"{site.url}{path}?access_token={token('feed url')}")


async def add_source(system: System, source: str, kind: str, **config: Any) -> None:
    await system.database.execute(
        "INSERT INTO pull_sources (workspace_id, source_id, kind, config_json, every) VALUES ($1, $2, $3, $4, $5)",
        *(UUID(WORKSPACE), source, kind, json.dumps({"first": "all", **config}), timedelta(seconds=1)),
    )
    await system.database.execute(
        "INSERT INTO workspace_endpoints (workspace_id, kind, source_id) VALUES ($1, 'pull_source', $2)",
        *(UUID(WORKSPACE), source),
    )


async def bind_secret(system: System, name: str) -> None:
    """To the environment variable that ``ENVIRONMENT`` has under this name."""
    await system.database.execute(
        "INSERT INTO credential_bindings (workspace_id, auth_ref, platform, secret_ref) VALUES ($1, $2, 'pull', $3)",
        *(UUID(WORKSPACE), name, f"env:{name.upper()}"),
    )


def record(kind: str, site: Site) -> dict[str, Any]:
    """One item that carries something in each field."""
    picture = site.put(f"/{token(f'{kind} media')}.png", "", status=404)
    return {column: words(f"{kind} {column}") for column in Fields.__struct_fields__} | {
        "media": [picture, url(f"{kind} media"), words(f"{kind} media")],
        "tags": [mail(f"{kind} tags"), words(f"{kind} tags")],
    }


ALL_FIELDS = {column: column for column in Fields.__struct_fields__}


async def add_interfaces(system: System, site: Site) -> None:
    """A JSON interface for each way in which one can answer."""
    long = {"id": words("api refused"), "text": "x" * 70_000}
    refused = site.put("/refused", json.dumps([long, long]))
    pages = {"items": [record("api", site)], "next": f"{site.url}/page?access_token={token('api next')}"}
    site.put("/page", words("api page"), status=500)
    site.put("/redirect", "", status=302, headers={"Location": url("api redirect")})
    for source, where, options in (
        ("api", site.put("/api", json.dumps(pages)), {"items": "items", "paging": {"by": "next", "path": "next"}}),
        ("api-refused", refused, {}),
        ("api-body", site.put("/body", '{"items": [' + words("api body")), {}),
        ("api-gone", f"{site.url}/page", {}),
        ("api-redirect", f"{site.url}/redirect", {}),
    ):
        await add_source(
            system,
            source,
            "api",
            url=f"{where}?access_token={token('api url')}",
            fields=ALL_FIELDS,
            auth={"ref": "canary_api"},
            **{"item_tags": True, **options},
        )
    await bind_secret(system, "canary_api")


def environment() -> dict[str, str]:
    """What the services find the secrets of sources in; the DSN of the system's own database is not known yet."""
    return {
        "CANARY_API": token("api secret"),
        "CANARY_AWAY": f"postgresql://ann:{password('dsn away')}@127.0.0.1:1/{token('dsn away')}",
        "CANARY_WRONG": f"postgresql://ann:{password('dsn wrong')}@127.0.0.1:port/{token('dsn wrong')}",
        "CANARY_OPTION": f"postgresql://127.0.0.1:1/x?password={password('dsn option')}&wrong={token('dsn option')}",
    }


def with_password(database_url: str) -> str:
    """The server asks for none."""
    parts = urlsplit(database_url)
    place = parts.netloc.rpartition("@")[2]
    return parts._replace(netloc=f"{parts.username or 'postgres'}:{password('dsn')}@{place}").geturl()


async def add_databases(system: System, site: Site) -> None:
    """A source database for each way in which a query can go."""
    row = json.dumps(record("db", site)).replace("'", "''")
    long = f"SELECT '{words('db refused')}' AS id, repeat('x', 70000) AS text"
    late = f"SELECT CASE n WHEN 2 THEN '{words('db late error')}'::int END AS id FROM generate_series(1, 3) AS n"
    cursor = {"column": "id", "start": words("db cursor")}
    for source, dsn, query, options in (
        ("db", "canary_dsn", f"SELECT * FROM jsonb_to_record('{row}') AS of ({COLUMNS})", {"item_tags": True}),
        ("db-refused", "canary_dsn", f"{long} UNION ALL {long}", {}),
        ("db-error", "canary_dsn", f"SELECT '{words('db error')}'::int AS id", {}),
        ("db-late", "canary_dsn", late, {}),
        ("db-cursor", "canary_dsn", "SELECT 1 AS id WHERE $1 > 0", {"cursor": cursor}),
        ("db-value", "canary_dsn", f'SELECT id FROM "{words("db value")[:63]}"', {}),
        ("db-away", "canary_away", "SELECT 1 AS id", {}),
        ("db-wrong", "canary_wrong", "SELECT 1 AS id", {}),
        ("db-option", "canary_option", "SELECT 1 AS id", {}),
    ):
        await add_source(system, source, "db", dsn_ref=dsn, query=query, fields=ALL_FIELDS, **options)
    for name in ("canary_dsn", "canary_away", "canary_wrong", "canary_option"):
        await bind_secret(system, name)


COLUMNS = ", ".join(
    f"{column} {'text[]' if column in ('media', 'tags') else 'text'}" for column in Fields.__struct_fields__
)


async def set_the_scene(system: System) -> None:
    """Four channels: one works, one has a template, one a template that fails, and both platforms refuse one call."""
    workspace = UUID(WORKSPACE)
    bodies = {
        "good": f"{{{{ text }}}} {{{{ title }}}} {{{{ extra }}}} {words('template')}",
        "bad": f"{{{{ text | {'x' * 300} }}}} {words('broken template')}",
    }
    for name, body in bodies.items():
        await system.database.execute(
            "INSERT INTO templates (workspace_id, template_id, body, defaults) VALUES ($1, $2, $3, $4)",
            *(workspace, name, body, json.dumps({"title": "", "extra": words("default")})),
        )
    await system.database.execute(
        "UPDATE channels SET enabled = title ~ '^Demo (MAX 1|Telegram [123])$', "
        "template_ref = CASE title WHEN 'Demo Telegram 2' THEN 'good' WHEN 'Demo Telegram 3' THEN 'bad' END, "
        "rate_rps = NULL WHERE workspace_id = $1",
        workspace,
    )
    await system.database.execute("UPDATE platform_limits SET rate_rps = NULL WHERE workspace_id = $1", workspace)
    await system.control(
        "faults",
        [
            {
                "name": platform,
                "platform": platform,
                "times": 3,
                "effect": {"status": 400, "description": f"Bad Request: {words(f'{platform} answer')}"},
            }
            for platform in ("telegram", "max")
        ],
    )


async def ask_why(system: System, name: str) -> bytes:
    process = await create_subprocess_exec(
        *(sys.executable, "-m", "autopost_cli", "why", name, "--json"),
        env={"AUTOPOST_DATABASE_URL": system.places["database_url"]},
        stdout=PIPE,
        stderr=PIPE,
    )
    return b"".join(await process.communicate())


async def all_of_why(system: System) -> bytes:
    """Of every message, delivery and post, and by the words that a sender gave."""
    ids = await system.database.fetch(
        "SELECT message_id::text AS id FROM messages UNION ALL SELECT delivery_id::text FROM deliveries UNION ALL "
        "SELECT post_id::text FROM staged_posts UNION ALL SELECT run_id::text FROM ingest_runs UNION ALL "
        "SELECT channel_id::text FROM channels WHERE enabled"
    )
    answers = [(await system.database.fetchval("SELECT why($1)::text", row["id"])).encode() for row in ids]
    return b"\n".join([*answers, *[await ask_why(system, words(name)[:256]) for name in ("source ref", "text")]])


async def look_around(system: System) -> bytes:
    monitor = system.stack.urls["monitor"]
    asked = [f"{base}/{page}" for base in system.places["health"].values() for page in ("readyz", "metrics")]
    allowed = {"Authorization": f"Bearer {STATUS_TOKEN}"}
    reports = (f"{monitor}/v1/status", f"{monitor}/status")
    answers = [await system.http.get(page, headers=allowed if page in reports else {}) for page in (*asked, *reports)]
    return b"\n".join(answer.content for answer in answers)


async def dump_but_own(database_url: str) -> bytes:
    left_out = [f"--exclude-table-data={table}" for table in OWN]
    process = await create_subprocess_exec(
        postgres_programs(18, None) / "pg_dump", "--inserts", *left_out, database_url, stdout=PIPE
    )
    text, _ = await process.communicate()
    assert process.returncode == 0
    return text


async def settled(system: System) -> bool:
    waiting = set(await system.statuses()) & {"queued", "claimed", "sending"}
    staged = await system.database.fetchval("SELECT count(*) FROM staged_posts WHERE status IN ('staged', 'fetching')")
    unpulled = await system.database.fetchval(
        "SELECT count(*) FROM pull_sources WHERE pulled_at IS NULL AND workspace_id = $1", UUID(WORKSPACE)
    )
    unanswered = await system.database.fetchval(
        "SELECT (SELECT coalesce(sum(unanswered), 0) FROM bot_counts()) + (SELECT count(*) FROM bot_outbox "
        "WHERE sent_at IS NULL AND failed_at IS NULL)"
    )
    if unanswered:
        return False
    return not waiting and not staged and not unpulled and await seen(system) == ACTIONS  # a retry may still be sent


async def test_what_people_write_turns_up_only_where_posts_are_kept(
    start_system: StartSystem, seeded_database: Database, nats_url: str, nats_namespace: str, tmp_path: Path
) -> None:
    system = await start_system(
        **environment(),
        CANARY_DSN=with_password(seeded_database.url),
        AUTOPOST_LOG_LEVEL="debug",
        AUTOPOST_TRACE_DIR=str(tmp_path / "traces"),
        AUTOPOST_FETCH_ALLOW="127.0.0.0/8",
        AUTOPOST_POLL_INTERVAL="100ms",
    )
    refused = canaries.record_answers(system.http, other_than=system.places["simulator"])
    async with canaries.overheard(nats_url, nats_namespace) as bus, Site().open() as site:
        await set_the_scene(system)
        await add_feed(system, site)
        await add_interfaces(system, site)
        await add_databases(system, site)
        taken = await post_everything(system, site)
        await bring_updates(system)
        await talk_to_the_shop(system)
        await bring_actions(system)
        await eventually(lambda: settled(system), within=IN_TIME)
        why = await all_of_why(system)
        pages = await look_around(system)
        await asyncio.gather(*(system.stack.stop(service) for service in ("dispatcher", "ingest", "bot")))
        told = await system.database.fetchval("SELECT count(*) FROM events")
        await eventually(lambda: sum(b".audit." in said.partition(b"\n")[0] for said in bus) >= told, within=IN_TIME)
    await system.stack.stop("monitor")
    haystacks = {
        "logs": canaries.files(tmp_path / "stack" / "logs", other_than="simulator.log"),
        "spans": canaries.files(tmp_path / "traces"),
        "events": await canaries.events(system.database),
        "answers": b"\n".join(refused),
        "why": why,
        "pages": pages,
        "tables": await dump_but_own(system.places["database_url"]),
        "bus": b"\n".join(bus),
        "streams": await canaries.streams(nats_url, nats_namespace),
    }

    assert taken
    assert [place for place, sign in SIGNS.items() if sign not in haystacks[place]] == []
    assert await seen(system) == ACTIONS
    assert await codes(system) == CODES
    assert set(FIELDS) == FED  # before all are searched for
    assert canaries.hits(searched(), haystacks) == []


async def seen(system: System) -> set[str]:
    """Of the events that tell of foreign words, those that there are."""
    rows = await system.database.fetch("SELECT DISTINCT action::text FROM events")
    return {row["action"] for row in rows} & ACTIONS


async def codes(system: System) -> dict[str, str | None]:
    """How each source failed, if it did."""
    rows = await system.database.fetch(
        "SELECT source_id, CASE WHEN failures > 0 THEN last_error ->> 'code' END AS code FROM pull_sources "
        "WHERE workspace_id = $1",
        UUID(WORKSPACE),
    )
    return {row["source_id"]: row["code"] for row in rows}


CODES = {
    **{"feed": None, "gone": "http_404", "api": "http_500", "api-refused": None, "api-body": "unreadable"},
    **{"api-gone": "http_500", "api-redirect": "credentials_in_url", "db": None, "db-refused": None},
    **{"db-error": "config_invalid", "db-late": "config_invalid", "db-cursor": "config_invalid"},
    **{"db-value": "config_invalid", "db-away": "connect", "db-wrong": "connect", "db-option": "connect"},
}
ACTIONS = {
    *("ingress_dedup_dropped", "ingress_payload_rejected", "validation_failed", "message_tag_mismatch"),
    *("media_failed", "failed_permanent", "sent", "pull_failed"),
    *("bot_action_expired", "bot_escalated", "bot_replied", "bot_reply_failed"),
}
SIGNS = {
    "logs": b"delivery.attempted",
    "spans": b"telegram sendMessage",
    "events": b"failed_permanent",
    "answers": b"trace_id",
    "why": b"problems",
    "pages": b"autopost_",
    "tables": b"validation_failed",
    "bus": b"wakeup.dispatch",
    "streams": b"audit.",
}
"""That each was really searched: what must be in it."""


def test_each_field_of_a_post_carries_something() -> None:
    inner: dict[str, type[Struct]] = {"media": MediaItem, "routing": Routing, "buttons": PostButton}
    fields = {name for name in PostRequest.__struct_fields__ if name != "buttons"}
    fields |= {f"{outer}.{name}" for outer, struct in inner.items() for name in struct.__struct_fields__}

    assert set(OF_A_POST) == fields
    assert set(OF_A_POST.values()) <= set(FIELDS)


@pytest.mark.parametrize("table", OWN)
async def test_every_table_that_is_left_out_exists(table: str, seeded_database: Any) -> None:
    assert await seeded_database.pool.fetchval("SELECT to_regclass($1) IS NOT NULL", f"public.{table}")
