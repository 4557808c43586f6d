"""What only a bot needs of MAX: answers to pressed buttons, and the webhooks that its updates come to.

None of these calls posts a message, so none of their failures is ambiguous. MAX refuses some with status 200 and
``success: false``.
"""

from collections.abc import Sequence
from typing import Any

from autopost_contracts.outcomes import Failed, Scope
from autopost_runtime.config.load import Secret
from autopost_runtime.http.client import HttpAnswer
from msgspec import Struct
from msgspec.structs import replace

from autopost_adapters.answers import reader, words
from autopost_adapters.classify import certain, with_answer
from autopost_adapters.max.answers import parse
from autopost_adapters.max.api import Api

LONGEST_NOTIFICATION = 200
"""Characters of what is shown for a moment over the chat."""


class WebhookSubscription(Struct, frozen=True):
    url: str
    update_types: list[str] | None = None
    """``None``: all."""


class SubscriptionList(Struct, frozen=True):
    subscriptions: list[WebhookSubscription] = []


class Done(Struct, frozen=True):
    success: bool
    message: Any = ""


_done = reader(Done)
_list = reader(SubscriptionList)


async def answer(
    api: Api, callback_id: str, token: Secret, *, notification: str, remove_buttons: bool
) -> Failed | None:
    body: dict[str, Any] = {"message": {"attachments": []}} if remove_buttons else {}
    if notification:
        body["notification"] = notification[:LONGEST_NOTIFICATION]
    return _ended(await api.call("POST", "/answers", token, {"callback_id": callback_id}, body))


async def list_subscriptions(api: Api, token: Secret) -> tuple[WebhookSubscription, ...] | Failed:
    response = await api.call("GET", "/subscriptions", token)
    found = response if isinstance(response, Failed) else parse(response, _list)
    return certain(found) if isinstance(found, Failed) else tuple(found.subscriptions)


async def subscribe(api: Api, token: Secret, url: str, types: Sequence[str], secret: Secret) -> Failed | None:
    body = {"url": url, "update_types": list(types), "secret": secret.reveal()}
    return _ended(await api.call("POST", "/subscriptions", token, json=body), secret)


async def unsubscribe(api: Api, token: Secret, url: str) -> Failed | None:
    return _ended(await api.call("DELETE", "/subscriptions", token, {"url": url}))


def _ended(response: HttpAnswer | Failed, secret: Secret | None = None) -> Failed | None:
    done = response if isinstance(response, Failed) else parse(response, _done)
    if isinstance(done, Failed):
        return _without(secret, certain(done))
    if done.success or isinstance(response, Failed):
        return None
    refused = Failed.permanent(Scope.DELIVERY, "refused", words(done.message))
    return _without(secret, replace(with_answer(refused, response), answered=True))


def _without(secret: Secret | None, failed: Failed) -> Failed:
    """Some servers repeat the request in the response."""
    if secret is None or secret.reveal() not in f"{failed.message}{failed.raw}":
        return failed
    return replace(failed, message=failed.code, raw={})
