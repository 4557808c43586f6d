"""What senders, feeds, templates, customers and platforms write turns up in no log, span, event, alert or answer.

Each field carries a password, a token, a phone number and an e-mail address of its own. Only what a post is stored and
shown from may hold them: the tables in ``OWN``, and raw payloads in the object store, which are opened with a reason.
"""

import asyncio
import json
import sys
from asyncio.subprocess import PIPE, create_subprocess_exec
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from autopost_cli.development import PUSH_SECRET, WORKSPACE
from autopost_cli.embedded.places import postgres_programs
from harness.eventually import eventually
from ingest.support.pull_setup import Site

from e2e import canaries
from e2e.conftest import StartSystem
from e2e.system import System

OWN = (
    *("messages", "renderings", "staged_posts", "ingress_receipts", "pull_receipts", "pull_cursors"),
    *("templates", "pull_sources", "bot_inbox", "bot_outbox", "bot_state", "bot_logs", "bot_actions"),
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
    *("telegram answer", "max answer"),
)
BOT_SECRET = "demo-bot-secret-for-development"
STATUS_TOKEN = "demo-status-token-for-development"


def number(field: str) -> int:
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
    }


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
    updates: list[Any] = [
        {"update_type": "message_created", "timestamp": 1, "message": message},
        {"update_type": "message_callback", "timestamp": 1, "callback": pressed, "message": message},
        {"update_type": words("bot payload"), "timestamp": 1, "chat_id": words("bot payload")},
    ]
    hook = f"{system.places['ingest']}/v1/bot/max"
    for content in (*(json.dumps(update).encode() for update in updates for _ in range(2)), words("bot text").encode()):
        await system.http.post(hook, headers={"X-Max-Bot-Api-Secret": BOT_SECRET}, content=content)


async def add_feed(system: System, site: Site) -> None:
    item = "".join(
        f"<{name}>{words(field).replace('&', '&amp;')}</{name}>"
        for name, field in {
            "title": "feed title",
            "description": "feed text",
            "link": "feed link",
            "guid": "feed guid",
            "author": "feed author",
            "category": "feed category",
        }.items()
    )
    picture = site.put(f"/{token('feed enclosure')}.png", "", status=404)
    enclosure = f'<enclosure url="{picture}" type="image/png" length="1"/>'
    guid = words("feed refused").replace("&", "&amp;")
    long = f"<item><guid>{guid}</guid><description>{'x' * 70_000}</description></item>"
    items = f"<item>{item}{enclosure}</item>{long}{long}"
    feed = f'<rss version="2.0"><channel><title>x</title>{items}</channel></rss>'
    site.put("/feed", feed)
    site.put("/gone", words("feed url"), status=404)
    for source, path in {"feed": "/feed", "gone": "/gone"}.items():
        await system.database.execute(
            "INSERT INTO pull_sources (workspace_id, source_id, kind, config_json, every) "
            "VALUES ($1, $2, 'rss', jsonb_build_object('url', $3::text, 'first', 'all'), '1 second')",
            *(UUID(WORKSPACE), source, f"{site.url}{path}?access_token={token('feed url')}"),
        )
        await system.database.execute(
            "INSERT INTO workspace_endpoints (workspace_id, kind, source_id) VALUES ($1, 'pull_source', $2)",
            *(UUID(WORKSPACE), source),
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
    pulled = await system.database.fetchval("SELECT count(*) FROM pull_sources WHERE pulled_at IS NOT NULL")
    return not waiting and not staged and pulled == 2


async def test_what_people_write_turns_up_only_where_posts_are_kept(
    start_system: StartSystem, nats_url: str, nats_namespace: str, tmp_path: Path
) -> None:
    system = await start_system(
        AUTOPOST_LOG_LEVEL="debug",
        AUTOPOST_TRACE_DIR=str(tmp_path / "traces"),
        AUTOPOST_FETCH_ALLOW="127.0.0.0/8",
        AUTOPOST_POLL_INTERVAL="100ms",
    )
    refused = canaries.record_answers(system.http, other_than=system.places["simulator"])
    async with canaries.overheard(nats_url, nats_namespace) as bus, Site().open() as site:
        await set_the_scene(system)
        await add_feed(system, site)
        taken = await post_everything(system, site)
        await bring_updates(system)
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
    assert canaries.hits(searched(), haystacks) == []


async def seen(system: System) -> set[str]:
    """Of the events that tell of foreign words, those that there are."""
    rows = await system.database.fetch("SELECT DISTINCT action::text FROM events")
    return {row["action"] for row in rows} & ACTIONS


ACTIONS = {
    *("ingress_dedup_dropped", "ingress_payload_rejected", "validation_failed", "message_tag_mismatch"),
    *("media_failed", "failed_permanent", "sent", "pull_failed"),
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


@pytest.mark.parametrize("table", OWN)
async def test_every_table_that_is_left_out_exists(table: str, seeded_database: Any) -> None:
    assert await seeded_database.pool.fetchval("SELECT to_regclass($1) IS NOT NULL", f"public.{table}")
