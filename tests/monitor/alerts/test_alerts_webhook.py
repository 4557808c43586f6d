"""The webhook target: what is sent, how it is signed, and what its answers mean."""

import base64
import hashlib
import hmac
from collections.abc import AsyncIterator
from datetime import timedelta

import msgspec
import pytest
from aiohttp import web
from autopost_monitor.alerts.notice_result import NoticeDelivered, NoticeRejected, TargetUnreachable
from autopost_monitor.alerts.webhook import WebhookTarget
from autopost_runtime.config.load import Secret
from autopost_runtime.http.client import HttpClient
from monitor.support.alert_targets import ALERT, FakeWebhook, configured, hook_listening, notice

KEY = b"0123456789abcdef0123456789abcdef"
SECRET = Secret(f"whsec_{base64.b64encode(KEY).decode()}")


@pytest.fixture
async def hook() -> AsyncIterator[FakeWebhook]:
    async with hook_listening("/services/canary-path") as listening:
        yield listening


@pytest.fixture
async def http() -> AsyncIterator[HttpClient]:
    async with HttpClient(limit=2) as client:
        yield client


def target(hook: FakeWebhook, http: HttpClient, secret: Secret | None = None) -> WebhookTarget:
    made = WebhookTarget.of(configured(alert_webhook_url=Secret(hook.url), alert_webhook_secret=secret), http)
    assert made is not None
    return made


async def test_a_notice_is_one_json_object_under_an_id_that_stays_the_same(hook: FakeWebhook, http: HttpClient) -> None:
    for _ in range(2):
        assert await target(hook, http).send(notice()) == NoticeDelivered()

    (headers, body), (again, _) = hook.received
    told = msgspec.json.decode(body)
    assert headers["content-type"] == "application/json"
    assert headers["webhook-id"] == again["webhook-id"] == told["id"] == f"{ALERT}-opened-1"
    assert (told["type"], told["condition"], told["count"], told["workspace"]) == ("alert.opened", "dead", 3, "demo")
    assert told["causes"][0]["code"] == "chat_not_found"
    assert told["text"].startswith(told["subject"])
    assert "webhook-signature" not in headers


async def test_it_is_signed_as_standard_webhooks_has_it(hook: FakeWebhook, http: HttpClient) -> None:
    await target(hook, http, SECRET).send(notice())

    [(headers, body)] = hook.received
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    expected = base64.b64encode(hmac.new(KEY, signed, hashlib.sha256).digest()).decode()
    assert headers["webhook-signature"] == f"v1,{expected}"


@pytest.mark.parametrize("status", [400, 413, 422])
async def test_an_answer_about_the_body_refuses_this_notice(hook: FakeWebhook, http: HttpClient, status: int) -> None:
    hook.answers = [web.Response(status=status, text="canary-text")]

    assert await target(hook, http).send(notice()) == NoticeRejected(f"http_{status}")


@pytest.mark.parametrize("status", [301, 401, 403, 404, 408, 429, 500, 502, 503])
async def test_any_other_answer_is_a_target_that_is_away(hook: FakeWebhook, http: HttpClient, status: int) -> None:
    hook.answers = [web.Response(status=status, text="canary-text")]

    assert await target(hook, http).send(notice()) == TargetUnreachable(f"http_{status}")


async def test_a_wait_that_it_asks_for_is_told_on(hook: FakeWebhook, http: HttpClient) -> None:
    hour = timedelta(hours=1)
    asked = {"30": timedelta(seconds=30), "999999": hour, "9" * 15: hour, "9" * 5000: hour, "soon": None}
    hook.answers = [web.Response(status=429, headers={"Retry-After": seconds}) for seconds in asked]

    endings = [await target(hook, http).send(notice()) for _ in asked]

    assert endings == [TargetUnreachable("http_429", wait) for wait in asked.values()]


async def test_a_lost_connection_tells_nothing_of_the_address(hook: FakeWebhook, http: HttpClient) -> None:
    hook.away = True

    ended = await target(hook, http).send(notice())

    assert isinstance(ended, TargetUnreachable)
    assert "canary" not in repr(ended)
