"""The webhook target: what is sent, how it is signed, and what its answers mean."""

import base64
import hashlib
import hmac
from collections.abc import AsyncIterator
from datetime import timedelta

import msgspec
import pytest
from aiohttp import web
from autopost_monitor.alert_ending import Delivered, Refused, Unreachable
from autopost_monitor.alert_webhook import WebhookTarget
from autopost_runtime.config import Secret
from autopost_runtime.http import HttpClient

from monitor.alert_stage import ALERT, Hook, configured, hook_listening, notice

KEY = b"0123456789abcdef0123456789abcdef"
SECRET = Secret(f"whsec_{base64.b64encode(KEY).decode()}")


@pytest.fixture
async def hook() -> AsyncIterator[Hook]:
    async with hook_listening("/services/canary-path") as listening:
        yield listening


@pytest.fixture
async def http() -> AsyncIterator[HttpClient]:
    async with HttpClient(limit=2) as client:
        yield client


def target(hook: Hook, http: HttpClient, secret: Secret | None = None) -> WebhookTarget:
    made = WebhookTarget.of(configured(alert_webhook_url=Secret(hook.url), alert_webhook_secret=secret), http)
    assert made is not None
    return made


async def test_a_notice_is_one_json_object_under_an_id_that_stays_the_same(hook: Hook, http: HttpClient) -> None:
    for _ in range(2):
        assert await target(hook, http).tell(notice()) == Delivered()

    (headers, body), (again, _) = hook.received
    told = msgspec.json.decode(body)
    assert headers["content-type"] == "application/json"
    assert headers["webhook-id"] == again["webhook-id"] == told["id"] == f"{ALERT}-opened-1"
    assert (told["type"], told["condition"], told["count"], told["workspace"]) == ("alert.opened", "dead", 3, "demo")
    assert told["causes"][0]["code"] == "chat_not_found"
    assert told["text"].startswith(told["subject"])
    assert "webhook-signature" not in headers


async def test_it_is_signed_as_standard_webhooks_has_it(hook: Hook, http: HttpClient) -> None:
    await target(hook, http, SECRET).tell(notice())

    [(headers, body)] = hook.received
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    expected = base64.b64encode(hmac.new(KEY, signed, hashlib.sha256).digest()).decode()
    assert headers["webhook-signature"] == f"v1,{expected}"


@pytest.mark.parametrize("status", [400, 413, 422])
async def test_an_answer_about_the_body_refuses_this_notice(hook: Hook, http: HttpClient, status: int) -> None:
    hook.answers = [web.Response(status=status, text="canary-text")]

    assert await target(hook, http).tell(notice()) == Refused(f"http_{status}")


@pytest.mark.parametrize("status", [301, 401, 403, 404, 408, 429, 500, 502, 503])
async def test_any_other_answer_is_a_target_that_is_away(hook: Hook, http: HttpClient, status: int) -> None:
    hook.answers = [web.Response(status=status, text="canary-text")]

    assert await target(hook, http).tell(notice()) == Unreachable(f"http_{status}")


async def test_a_wait_that_it_asks_for_is_told_on(hook: Hook, http: HttpClient) -> None:
    hook.answers = [web.Response(status=429, headers={"Retry-After": seconds}) for seconds in ("30", "999999", "soon")]

    waits = [await target(hook, http).tell(notice()) for _ in range(3)]

    assert [one.wait for one in waits if isinstance(one, Unreachable)] == [
        timedelta(seconds=30),
        timedelta(hours=1),
        None,
    ]


async def test_a_lost_connection_tells_nothing_of_the_address(hook: Hook, http: HttpClient) -> None:
    hook.away = True

    ended = await target(hook, http).tell(notice())

    assert isinstance(ended, Unreachable)
    assert "canary" not in repr(ended)
