"""The action API of the bot service, called by HTTP as integrations call it, with a secret of kind `bot_api`."""

import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import click
import httpx
import msgspec

PATIENCE = 10.0
SILENCE = 45.0
"""A stream says something every fifteen seconds."""
AGAIN = 2.0


class BotApi(msgspec.Struct, frozen=True):
    url: str
    secret: str
    workspace: str

    def actions(self, chat: str) -> list[dict[str, Any]]:
        query = {"workspaceId": self.workspace, "chatId": chat}
        actions: list[dict[str, Any]] = self._answer("GET", "/api/chat/actions", params=query)
        return actions

    def start(self, fields: dict[str, Any]) -> dict[str, Any]:
        return self._post("/api/chat/actions/start", fields)

    def update(self, fields: dict[str, Any]) -> dict[str, Any]:
        return self._post("/api/chat/actions/update", fields)

    def watch(self, chat: str, *, after: int | None) -> Iterator[dict[str, Any]]:
        """The events of a chat, for ever: a stream that ends is opened again where it ended."""
        last = None if after is None else str(after)
        while True:
            try:
                for identity, event in self._stream(chat, last):
                    last = identity
                    if event is not None:
                        yield event
            except httpx.TransportError as exc:
                click.echo(f"The stream was interrupted ({type(exc).__name__}); opening it again.", err=True)
            time.sleep(AGAIN)

    def _stream(self, chat: str, last: str | None) -> Iterator[tuple[str, dict[str, Any] | None]]:
        """The id of each block, and its event; the first block has an id alone."""
        headers = {**self._headers, **({"Last-Event-ID": last} if last is not None else {})}
        address = f"{self.url}/api/chats/{quote(chat, safe='')}/events"
        with httpx.stream("GET", address, headers=headers, timeout=httpx.Timeout(PATIENCE, read=SILENCE)) as response:
            if response.status_code != httpx.codes.OK:
                response.read()
                raise _refused(response)
            identity, data = last or "", None
            for line in response.iter_lines():
                name, _, value = line.partition(": ")
                if name == "id":
                    identity = value
                elif name == "data":
                    data = value
                elif not line and identity:
                    yield identity, None if data is None else msgspec.json.decode(data)
                    data = None

    def _post(self, path: str, fields: dict[str, Any]) -> dict[str, Any]:
        action: dict[str, Any] = self._answer("POST", path, json={"workspaceId": self.workspace, **fields})
        return action

    def _answer(self, method: str, path: str, **given: Any) -> Any:
        try:
            response = httpx.request(method, f"{self.url}{path}", headers=self._headers, timeout=PATIENCE, **given)
        except (httpx.HTTPError, httpx.InvalidURL) as exc:
            raise click.ClickException(
                f"The bot service does not answer at {self.url} ({type(exc).__name__})."
            ) from exc
        if response.is_error:
            raise _refused(response)
        return response.json()

    @property
    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.secret}"}


def _refused(response: httpx.Response) -> click.ClickException:
    """In the words of the service, where it has some."""
    try:
        problem = response.json()
        words = problem.get("detail") or problem["title"]
    except (ValueError, KeyError, AttributeError):
        words = response.reason_phrase
    return click.ClickException(f"{response.status_code}: {words}")
