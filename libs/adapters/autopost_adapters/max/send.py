"""The adapter for MAX: media is uploaded first, then one message refers to it by token."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Annotated

from autopost_contracts.outcomes import Failed
from autopost_contracts.plan import Part, PlannedMedia, TextPart
from autopost_runtime.config.load import Secret
from msgspec import Meta, Struct

from autopost_adapters.answers import reader
from autopost_adapters.base import AcceptedPart, Held, Http, Material, Source, Target
from autopost_adapters.classify import certain
from autopost_adapters.max.answers import parse, read
from autopost_adapters.max.api import Api
from autopost_adapters.max.find import find
from autopost_adapters.max.message import address, message_body
from autopost_adapters.max.upload import upload
from autopost_adapters.max.webhooks import (
    WebhookSubscription,
    answer,
    list_subscriptions,
    subscribe,
    unsubscribe,
)


class BotIdentity(Struct, frozen=True):
    user_id: Annotated[int, Meta(ge=0, le=2**63 - 1)]


_me = reader(BotIdentity)


class MaxAdapter:
    platform = "max"
    uploads_apart = True
    can_find = True
    identifies_by_call = True
    patience: Mapping[str, Sequence[timedelta]] = {
        "attachment.not.ready": tuple(timedelta(seconds=seconds) for seconds in (1, 2, 4))
    }

    def __init__(self, http: Http, api_url: str, timeout: timedelta, upload_timeout: timedelta) -> None:
        self._api = Api(http, api_url.rstrip("/"), timeout, upload_timeout)

    async def identify(self, token: Secret) -> str | Failed:
        return await self._ask(token)

    async def probe(self, token: Secret, within: timedelta) -> Failed | None:
        bot = await self._ask(token, within)
        return bot if isinstance(bot, Failed) else None

    async def send(self, part: Part, target: Target, media: Sequence[Material] = ()) -> AcceptedPart | Failed:
        query = address(target.chat)
        if isinstance(part, TextPart) and part.preview.disabled:
            query["disable_link_preview"] = "true"
        response = await self._api.call("POST", "/messages", target.token, query, message_body(part, media))
        message_id = response if isinstance(response, Failed) else read(response)
        return message_id if isinstance(message_id, Failed) else AcceptedPart(provider_ids=(message_id,))

    async def upload(self, item: PlannedMedia, source: Source, target: Target) -> Held | Failed:
        return await upload(self._api, item, source, target.token)

    async def find(
        self, part: Part, target: Target, since: datetime, other_than: Collection[str]
    ) -> AcceptedPart | Failed | None:
        return await find(self._api, part, target, since, other_than)

    async def answer(
        self, callback_id: str, token: Secret, *, notification: str = "", remove_buttons: bool = False
    ) -> Failed | None:
        """Answer a pressed button: show a notification, remove the buttons of its message, or both; one is required.

        Takes a slot of the chat, like a message. What becomes of it changes nothing, so it is tried once.
        """
        return await answer(self._api, callback_id, token, notification=notification, remove_buttons=remove_buttons)

    async def subscriptions(self, token: Secret) -> tuple[WebhookSubscription, ...] | Failed:
        """The webhooks of the bot; with none it gets its updates nowhere."""
        return await list_subscriptions(self._api, token)

    async def subscribe(self, token: Secret, url: str, types: Sequence[str], secret: Secret) -> Failed | None:
        """Subscribe a webhook, or change one with the same URL; MAX sends ``secret`` with every update."""
        return await subscribe(self._api, token, url, types, secret)

    async def unsubscribe(self, token: Secret, url: str) -> Failed | None:
        return await unsubscribe(self._api, token, url)

    async def _ask(self, token: Secret, within: timedelta | None = None) -> str | Failed:
        response = await self._api.call("GET", "/me", token, within=within)
        bot = response if isinstance(response, Failed) else parse(response, _me)
        return certain(bot) if isinstance(bot, Failed) else str(bot.user_id)
