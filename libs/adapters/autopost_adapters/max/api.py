"""Calls to MAX. The token is sent in a header to the API only, never to an upload host."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

from autopost_contracts.outcomes import Failed
from autopost_runtime.config.load import Secret
from autopost_runtime.http.client import HttpAnswer, HttpError
from msgspec import Struct

from autopost_adapters.base import Http, MediaMissing, MediaUnreadable, Source
from autopost_adapters.classify import of_upload_host, unreachable, without_bytes, without_token
from autopost_adapters.multipart import multipart

PUBLIC_URL = "https://platform-api2.max.ru"


class Api(Struct, frozen=True):
    http: Http
    url: str
    timeout: timedelta
    upload_timeout: timedelta

    async def call(
        self,
        verb: str,
        path: str,
        token: Secret,
        query: Mapping[str, str | int] | None = None,
        json: Any = None,
        *,
        within: timedelta | None = None,
    ) -> HttpAnswer | Failed:
        try:
            answer = await self.http.request(
                verb,
                f"{self.url}{path}?{urlencode(query)}" if query else f"{self.url}{path}",
                json=json,
                headers={"Authorization": token.reveal()},
                timeout=min(within or self.timeout, self.timeout),
                span_name=f"max {verb} {path}",
                template=path,
            )
        except HttpError as exc:
            return unreachable(exc)
        return without_token(answer, token)

    async def hand_over(self, url: str, source: Source) -> HttpAnswer | Failed:
        """The URL grants the upload, so it is kept out of spans like a token."""
        try:
            return await self.http.request(
                "POST",
                url,
                body=multipart({}, {"data": source}),
                timeout=self.upload_timeout,
                span_name="max upload",
                template="/***",
            )
        except HttpError as exc:
            return of_upload_host(unreachable(exc))
        except (MediaMissing, MediaUnreadable) as exc:
            return without_bytes(exc)
