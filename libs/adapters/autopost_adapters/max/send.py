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
from autopost_adapters.max.message import message_body
from autopost_adapters.max.upload import upload


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
        answer = await self._ask(token, within)
        return answer if isinstance(answer, Failed) else None

    async def send(self, part: Part, target: Target, media: Sequence[Material] = ()) -> AcceptedPart | Failed:
        query = {"chat_id": target.chat}
        if isinstance(part, TextPart) and part.preview.disabled:
            query["disable_link_preview"] = "true"
        answer = await self._api.call("POST", "/messages", target.token, query, message_body(part, media))
        message_id = answer if isinstance(answer, Failed) else read(answer)
        return message_id if isinstance(message_id, Failed) else AcceptedPart(provider_ids=(message_id,))

    async def upload(self, item: PlannedMedia, source: Source, target: Target) -> Held | Failed:
        return await upload(self._api, item, source, target.token)

    async def find(
        self, part: Part, target: Target, since: datetime, other_than: Collection[str]
    ) -> AcceptedPart | Failed | None:
        return await find(self._api, part, target, since, other_than)

    async def _ask(self, token: Secret, within: timedelta | None = None) -> str | Failed:
        answer = await self._api.call("GET", "/me", token, within=within)
        bot = answer if isinstance(answer, Failed) else parse(answer, _me)
        return certain(bot) if isinstance(bot, Failed) else str(bot.user_id)
