"""From a publication that ends badly to its owner, with a real database: guarded, signed, and each on its own."""

import base64
import json
import ssl
from collections.abc import AsyncIterator
from datetime import timedelta
from ipaddress import ip_network
from typing import Any

import pytest
from aiohttp import web
from autopost_monitor.config import MonitorConfig
from autopost_monitor.owners.gateway import OwnerGateway
from autopost_monitor.owners.notify import OwnerNotifier
from autopost_monitor.owners.targets import owner_targets
from autopost_monitor.owners.text import WHAT
from autopost_runtime.config.load import Secret
from autopost_runtime.http.client import HttpClient
from autopost_runtime.postgres.pool import open_database
from autopost_runtime.telemetry import metrics
from autopost_simulator import Simulator, listening
from db.support.builders import Tenant, permanent
from db.support.publications import Publisher
from harness.certificates import Authority
from harness.databases import Database
from harness.http_client import http_client
from monitor.support.alert_targets import FakeWebhook, hook_listening, mail_listening
from standardwebhooks import Webhook
from structlog.testing import capture_logs

KEY = base64.b64encode(b"0123456789abcdef0123456789abcdef").decode()
QUICK = timedelta(milliseconds=50)
LOOPBACK = (ip_network("127.0.0.0/8"),)
TOKEN = "1000009:owner-tests-token-0123456789abcdefgh"


@pytest.fixture
def authority(tmp_path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
async def hook(authority) -> AsyncIterator[FakeWebhook]:
    async with hook_listening("/services/canary-path", tls=serving(authority)) as listening_hook:
        yield listening_hook


def serving(authority: Authority) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority.issue("hook"))
    return context


@pytest.fixture
async def publisher(database: Database) -> Publisher:
    return await Publisher.create(await Tenant.create(database.pool), title="News")


@pytest.fixture
async def tell(database: Database, authority: Authority):
    """One round of the job, wired as the service wires it."""

    async def round_of(gateway: type[OwnerGateway] = OwnerGateway, **settings: Any) -> None:
        given: dict[str, Any] = {"alert_retry": QUICK, "ca_bundle": authority.bundle, "fetch_allow": LOOPBACK}
        config = MonitorConfig(**(given | {"database_url": database.url} | settings))
        async with open_database(config, "monitor") as opened, HttpClient(limit=2) as http:
            await OwnerNotifier(gateway(opened), owner_targets(config, http), config.alert_retry).run_once()

    return round_of


async def failed(publisher: Publisher, owner: str, text: str = "a very secret price", code: str = "message_too_long"):
    publication = await publisher.begun(text, owner=owner)
    await publisher.tenant.set_channel(publisher.channel, "next_allowed_at = NULL")
    await publisher.tenant.commit(permanent(await publisher.tenant.claim_one(), code=code, message="too long"))
    return publication


async def left(publisher: Publisher) -> dict[str, Any]:
    rows = await publisher.tenant.db.fetch("SELECT owner, last_error FROM publication_notices WHERE told_at IS NULL")
    return {row["owner"]: row["last_error"] for row in rows}


async def test_a_url_gets_one_signed_object_that_says_what_happened_and_nothing_of_the_post(publisher, hook, tell):
    publication = await failed(publisher, hook.url)

    await tell(owner_webhook_secret=Secret(f"whsec_{KEY}"))
    await tell()

    [(headers, body)] = hook.received
    told = Webhook(KEY).verify(body, headers)
    assert (headers["webhook-id"], told["id"]) == (f"{publication}-2-content",) * 2
    assert set(told) == {
        *("type", "id", "workspace_id", "publication_id", "version", "status", "code", "at", "channel", "scheduled_at"),
        *("error", "subject", "text"),
    }
    assert (told["type"], told["code"], told["error"]["code"]) == ("publication.failed", "content", "message_too_long")
    assert told["channel"]["title"] == "News"
    assert told["subject"] in told["text"]
    assert b"secret price" not in body
    assert await left(publisher) == {}


async def test_without_a_secret_it_is_not_signed_and_has_the_same_id_at_every_try(publisher, hook, tell):
    await failed(publisher, hook.url)
    hook.answers = [web.Response(status=503)]

    await tell(alert_retry=timedelta(minutes=1))
    assert await left(publisher) == {hook.url: "http_503"}
    await publisher.tenant.db.execute("UPDATE publication_notices SET next_try_at = now()")
    await tell()

    (first, _), (second, _) = hook.received
    assert first["webhook-id"] == second["webhook-id"]
    assert "webhook-signature" not in first
    assert await left(publisher) == {}


async def test_an_owner_is_told_once_whatever_a_retry_ends_in(publisher, hook, tell):
    publication = await failed(publisher, hook.url)
    await tell()
    await publisher.call("retry_publication", publication, 2, "bob", "again")
    await publisher.tenant.set_channel(publisher.channel, "next_allowed_at = NULL")
    await publisher.tenant.commit(permanent(await publisher.tenant.claim_one(), code="message_too_long"))

    await tell()

    assert len(hook.received) == 1


async def test_an_internal_address_is_never_called(publisher, hook, tell):
    await failed(publisher, hook.url)

    with capture_logs() as logged:
        await tell(fetch_allow=())

    assert hook.received == []
    assert await left(publisher) == {hook.url: "forbidden_address"}
    assert [entry["outcome"] for entry in logged] == ["unreachable"]
    assert "canary" not in str(logged)


async def test_a_redirect_is_not_followed(publisher, hook, tell):
    await failed(publisher, hook.url)
    hook.answers = [web.Response(status=307, headers={"Location": hook.url})]

    await tell()

    assert len(hook.received) == 1
    assert await left(publisher) == {hook.url: "http_307"}


async def test_a_certificate_that_nobody_signed_gets_nothing(publisher, hook, tell):
    await failed(publisher, hook.url)

    await tell(ca_bundle=None)

    assert hook.received == []
    assert await left(publisher) == {hook.url: "tls"}


async def test_one_owner_who_cannot_be_reached_keeps_no_other_from_being_told(publisher, hook, tell):
    gone = hook.url.replace("/services/", "/gone/")
    nobody = "https://127.0.0.1:1/canary-port"
    for owner in (gone, nobody, hook.url):
        await failed(publisher, owner, text=owner)

    with capture_logs() as logged:
        await tell()

    assert len(hook.received) == 1
    assert await left(publisher) == {gone: "http_404", nobody: "connect"}
    assert "canary" not in str(logged)
    series = metrics.render().decode()
    assert 'autopost_owner_notices_total{outcome="delivered",target="webhook"}' in series
    assert 'autopost_owner_notices_total{outcome="unreachable",target="webhook"}' in series


async def test_a_mailbox_gets_a_mail(publisher, tell):
    await failed(publisher, "mailto:ann@shop.example")
    async with mail_listening() as server:
        given = {"alert_smtp_host": "127.0.0.1", "alert_smtp_port": server.port, "alert_smtp_tls": "off"}
        await tell(**given, alert_smtp_from="autopost@example.org", alert_smtp_to="ops@example.org")

    [mail] = server.mails
    assert (mail["To"], mail["From"]) == ("ann@shop.example", "autopost@example.org")
    assert "publication failed in telegram News" in mail["Subject"]
    assert "Edit it and have it approved again." in mail.get_content()
    assert "secret price" not in mail.as_string()


async def test_a_chat_gets_a_message_of_the_bot_that_sends_alerts(publisher, tell):
    await failed(publisher, "telegram:-1007")
    async with listening(Simulator(open_to_all=True)) as base, http_client(timeout=10) as http:
        await tell(telegram_api_url=base, alert_telegram_token=Secret(TOKEN), alert_telegram_chat="-1001")
        lines = (await http.get(f"{base}/_sim/log")).text.splitlines()

    [sent] = [json.loads(line) for line in lines if json.loads(line)["message_ids"]]
    assert sent["chat"] == "-1007"
    assert "publication failed" in sent["text"]


async def test_without_a_bot_or_a_mail_server_such_an_owner_waits(publisher, tell):
    await failed(publisher, "telegram:-1007", text="a")
    await failed(publisher, "mailto:ann@shop.example", text="b")

    await tell()

    assert await left(publisher) == {"telegram:-1007": None, "mailto:ann@shop.example": None}


async def test_a_result_that_cannot_be_recorded_keeps_no_other_from_being_told(publisher, hook, tell):
    first = await failed(publisher, hook.url, text="a")
    await failed(publisher, f"{hook.url}?second", text="b")

    class Broken(OwnerGateway):
        async def record_owner_notice(self, notice, *given):
            if notice.publication_id == first:
                raise RuntimeError("no")
            await super().record_owner_notice(notice, *given)

    with pytest.raises(RuntimeError):
        await tell(Broken)

    assert len(hook.received) == 2
    assert set(await left(publisher)) == {hook.url}


async def test_every_code_of_a_pause_or_a_failure_has_words(database):
    """Of the table of errors, in the functions that write them."""
    rows = await database.pool.fetch(
        """
        SELECT DISTINCT m[1] AS code
        FROM pg_proc p, regexp_matches(p.prosrc, 'THEN ''([a-z_]+)''', 'g') AS m
        WHERE p.proname = 'publication_error_type'
        """
    )
    pauses = {"missed", "unconfirmed", "plan_changed", "channel_disabled"}

    assert {row["code"] for row in rows} | pauses | {"platform"} == set(WHAT)
