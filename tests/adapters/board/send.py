"""Pin one part to the board: its text as JSON, its pictures beside it, in one form."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta

import msgspec
from autopost_adapters.base import AcceptedPart, Held, Http, Material, MediaMissing, MediaUnreadable, Source, Target
from autopost_adapters.classify import (
    Rule,
    certain,
    classify,
    snippet_of,
    unreachable,
    unreadable,
    wait_asked,
    without_bytes,
)
from autopost_adapters.multipart import multipart
from autopost_contracts.outcomes import Category, Failed, Scope
from autopost_contracts.plan import MediaPart, Part, PlannedMedia
from autopost_runtime.config.load import Secret
from autopost_runtime.http.client import HttpAnswer, HttpError
from msgspec import Struct

RULES = (
    Rule(400, "too long", Category.PERMANENT, Scope.DELIVERY, "message_too_long"),
    Rule(410, "", Category.PERMANENT, Scope.CHANNEL, "chat_not_found"),
    Rule(403, "closed for repairs", Category.PERMANENT, Scope.PLATFORM, "closed"),
)


class Pinned(Struct, frozen=True):
    notice: int
    pictures: list[str]


class Refusal(Struct, frozen=True):
    error: str = ""


class BoardAdapter:
    platform = "board"
    uploads_apart = False
    can_find = False
    identifies_by_call = True
    patience: Mapping[str, Sequence[timedelta]] = {}

    def __init__(self, http: Http, url: str, timeout: timedelta) -> None:
        self._http = http
        self._url = url
        self._timeout = timeout

    async def identify(self, token: Secret) -> str | Failed:
        return "the board"

    async def probe(self, token: Secret, within: timedelta) -> Failed | None:
        try:
            answer = await self._http.request(
                "GET",
                f"{self._url}/me",
                headers={"X-Key": token.reveal()},
                timeout=min(within, self._timeout),
                span_name="board me",
                template="/me",
            )
        except HttpError as exc:
            return certain(unreachable(exc))
        return None if answer.body == b'{"board":true}' else certain(self._refused(answer))

    async def send(self, part: Part, target: Target, media: Sequence[Material] = ()) -> AcceptedPart | Failed:
        names = [one if isinstance(one, str) else f"p{number}" for number, one in enumerate(media)]
        files = {name: one for name, one in zip(names, media, strict=True) if not isinstance(one, str)}
        notice = msgspec.json.encode({"text": part.text, "pictures": names}).decode()
        try:
            answer = await self._http.request(
                "POST",
                f"{self._url}/rooms/{target.chat}",
                body=multipart({"notice": notice}, files),
                headers={"X-Key": target.token.reveal()},
                timeout=self._timeout,
                span_name="board pin",
                template="/rooms/*",
            )
        except HttpError as exc:
            return unreachable(exc)
        except (MediaMissing, MediaUnreadable) as exc:
            return without_bytes(exc)
        return self._read(answer, part)

    async def upload(self, item: PlannedMedia, source: Source, target: Target) -> Held | Failed:
        raise TypeError("media goes up with its pin")

    async def find(
        self, part: Part, target: Target, since: datetime, other_than: Collection[str]
    ) -> AcceptedPart | Failed | None:
        raise TypeError("nobody can be asked what a room holds")

    def _read(self, answer: HttpAnswer, part: Part) -> AcceptedPart | Failed:
        kind: type[Pinned] | type[Refusal] = Pinned if answer.status == 200 else Refusal
        try:
            told = msgspec.json.decode(answer.body, type=kind)
        except (msgspec.DecodeError, UnicodeDecodeError):
            told = Refusal()
        if isinstance(told, Pinned):
            held = tuple(Held(provider_id=one) for one in told.pictures) if isinstance(part, MediaPart) else ()
            return AcceptedPart(provider_ids=(str(told.notice),), held=held)
        return self._refused(answer, told)

    def _refused(self, answer: HttpAnswer, told: Refusal | None = None) -> Failed:
        if answer.status == 200:
            return unreadable(answer)
        error = told.error if told else ""
        return classify(RULES, answer.status, error, retry_after_ms=wait_asked(answer), snippet=snippet_of(answer))
