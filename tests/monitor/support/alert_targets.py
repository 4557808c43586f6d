"""Sample notices, and a fake webhook and mail server controlled by the test."""

import asyncio
import contextlib
import email
import email.policy
import ssl
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from email.message import EmailMessage
from typing import Any
from uuid import UUID

from aiohttp import web
from autopost_monitor.alerts.gateway import Cause, Facts, Notice
from autopost_monitor.config import MonitorConfig

NOWHERE = "postgresql://nowhere/none"
AT = datetime(2026, 11, 16, 12, 30, tzinfo=UTC)
WORKSPACE = UUID("0de00000-0000-4000-8000-000000000001")
ALERT = UUID("0a1e0000-0000-4000-8000-000000000001")
DELIVERY = "de110000-0000-4000-8000-000000000001"


def configured(**settings: Any) -> MonitorConfig:
    return MonitorConfig(**({"database_url": NOWHERE, "alert_timeout": timedelta(seconds=20)} | settings))


def facts(kind: str = "opened", **fields: Any) -> Facts:
    told: dict[str, Any] = {
        "kind": kind,
        "at": AT,
        "condition": "dead",
        "workspace_id": WORKSPACE,
        "workspace": "demo",
        "count": 3,
        "threshold": 1,
        "since": AT - timedelta(minutes=10),
        "opened_at": AT - timedelta(minutes=9),
        "causes": (Cause(name="News", code="chat_not_found", count=3, id=DELIVERY),),
    }
    return Facts(**(told | fields))


def notice(kind: str = "opened", step: int = 1, **fields: Any) -> Notice:
    return Notice(workspace_id=WORKSPACE, alert_id=ALERT, step=step, kind=kind, attempt=0, facts=facts(kind, **fields))


class FakeWebhook:
    """Keeps what it was sent; answers with ``answers`` in turn, then 204."""

    def __init__(self) -> None:
        self.url = ""
        self.received: list[tuple[dict[str, str], bytes]] = []
        self.answers: list[web.Response] = []
        self.away = False

    async def handle(self, request: web.Request) -> web.Response:
        body = await request.read()
        if self.away:
            assert request.transport is not None
            request.transport.abort()
            return web.Response()
        self.received.append(({name.lower(): value for name, value in request.headers.items()}, body))
        return self.answers.pop(0) if self.answers else web.Response(status=204)


@contextlib.asynccontextmanager
async def hook_listening(path: str = "/hook", tls: ssl.SSLContext | None = None) -> AsyncIterator[FakeWebhook]:
    hook = FakeWebhook()
    app = web.Application()
    app.router.add_post(path, hook.handle)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
        hook.url = f"{'https' if tls else 'http'}://127.0.0.1:{runner.addresses[0][1]}{path}"
        yield hook
    finally:
        await runner.cleanup()


class MailServer:
    """As much SMTP as a client needs to hand over a mail. ``answers`` replaces what is said to a command."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.port = 0
        self.mails: list[EmailMessage] = []
        self.envelopes: list[tuple[str, list[str]]] = []
        self.logins: list[str] = []
        self.secured = 0
        self.answers: dict[str, str] = {}
        self.talks: set[asyncio.Task[None] | None] = set()
        self._tls = tls

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.talks.add(asyncio.current_task())
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            await self._talk(reader, writer)
        writer.close()

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        sender, recipients = "", []
        if not await self._say(writer, self.answers.get("HELLO", "220 here")):
            return await reader.readuntil(b"\0")  # for ever, or until the client has gone
        while line := (await reader.readline()).decode().strip():
            command = line.split(" ")[0].upper()
            if command == "MAIL":
                sender = line
            elif command == "RCPT":
                recipients.append(line)
            elif command == "AUTH":
                self.logins.append(line)
            usual = {"EHLO": self._features(), "DATA": "354 go on", "QUIT": "221 bye", "AUTH": "235 welcome"}
            usual["STARTTLS"] = "220 go on"
            await self._say(writer, self.answers.get(command, usual.get(command, "250 fine")))
            if command == "STARTTLS" and self._tls:
                await writer.start_tls(self._tls)
                self.secured += 1
            elif command == "DATA" and "DATA" not in self.answers:
                await self._take(reader, writer, (sender, recipients))
        return None

    async def _take(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, envelope: tuple[str, list[str]]
    ) -> None:
        body = await reader.readuntil(b"\r\n.\r\n")
        said = self.answers.get("BODY", "250 taken")
        if said.startswith("250"):
            message = email.message_from_bytes(body.removesuffix(b".\r\n"), policy=email.policy.default)
            assert isinstance(message, EmailMessage)
            self.mails.append(message)
            self.envelopes.append(envelope)
        await self._say(writer, said)

    def _features(self) -> str:
        return "250-here\r\n250-STARTTLS\r\n250 AUTH PLAIN" if self._tls else "250-here\r\n250 AUTH PLAIN"

    async def _say(self, writer: asyncio.StreamWriter, text: str) -> bool:
        """``False`` for one that says nothing."""
        if text:
            writer.write(f"{text}\r\n".encode())
            await writer.drain()
        return bool(text)


@contextlib.asynccontextmanager
async def mail_listening(tls: ssl.SSLContext | None = None) -> AsyncIterator[MailServer]:
    server = MailServer(tls)
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    server.port = listening.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listening.close()
        await asyncio.wait_for(asyncio.gather(*filter(None, server.talks)), 10)
