"""Tell people by mail. The library of the language blocks, so each mail is sent in a thread, one at a time."""

import asyncio
import smtplib
import ssl
from contextlib import suppress
from datetime import timedelta
from email.message import EmailMessage
from email.utils import format_datetime
from typing import Self

from autopost_runtime.config import Secret
from msgspec import Struct

from autopost_monitor.alert_config import AlertConfig
from autopost_monitor.alert_ending import Delivered, Ending, Refused, Unreachable
from autopost_monitor.alert_gateway import Notice
from autopost_monitor.alert_text import letter

DOMAIN = "autopost.invalid"
"""Of message ids alone: nothing is sent there."""


class Post(Struct, frozen=True, kw_only=True):
    """How to get to the server, and as whom."""

    host: str
    port: int
    tls: str
    user: str | None
    password: Secret | None
    timeout: timedelta
    trusted: ssl.SSLContext


class SmtpTarget:
    name = "smtp"

    def __init__(self, post: Post, sender: str, recipients: tuple[str, ...]) -> None:
        self._post = post
        self._sender = sender
        self._recipients = recipients
        self._sending: asyncio.Future[Ending] | None = None

    @classmethod
    def of(cls, config: AlertConfig) -> Self | None:
        if config.alert_smtp_host is None or config.alert_smtp_from is None or config.alert_smtp_to is None:
            return None
        trusted = ssl.create_default_context()
        if config.ca_bundle is not None:
            trusted.load_verify_locations(config.ca_bundle)
        post = Post(
            host=config.alert_smtp_host,
            port=config.alert_smtp_port,
            tls=config.alert_smtp_tls,
            user=config.alert_smtp_user,
            password=config.alert_smtp_password,
            timeout=config.alert_timeout,
            trusted=trusted,
        )
        recipients = tuple(one.strip() for one in config.alert_smtp_to.split(",") if one.strip())
        return cls(post, config.alert_smtp_from, recipients)

    async def tell(self, notice: Notice) -> Ending:
        """A thread cannot be ended: while one is stuck in a server that drips, no second one is begun."""
        if self._sending is not None and not self._sending.done():
            return Unreachable("still_sending")
        mail = _mail(notice, self._sender, self._recipients)
        self._sending = asyncio.ensure_future(asyncio.to_thread(_send, self._post, mail))
        patience = 3 * self._post.timeout.total_seconds()  # the limit of a single answer, and a mail takes several
        try:
            return await asyncio.wait_for(asyncio.shield(self._sending), patience)
        except TimeoutError:
            return Unreachable("timeout")


def _mail(notice: Notice, sender: str, recipients: tuple[str, ...]) -> EmailMessage:
    """The notices of one alert are one conversation, and a repeated one has the id it had."""
    words = letter(notice.facts)
    mail = EmailMessage()
    mail["From"] = sender
    mail["To"] = ", ".join(recipients)
    mail["Subject"] = words.subject
    mail["Date"] = format_datetime(notice.facts.at)
    mail["Message-ID"] = _id(notice, notice.step)
    if notice.step > 1:
        mail["References"] = _id(notice, 1)
    mail["Auto-Submitted"] = "auto-generated"
    mail.set_content(f"{words.body}\n")
    return mail


def _id(notice: Notice, step: int) -> str:
    """Short enough not to be folded, which not every server takes well."""
    return f"<{notice.alert_id}.{step}@{DOMAIN}>"


def _send(post: Post, mail: EmailMessage) -> Ending:
    try:
        with _connected(post) as server:
            try:
                server.send_message(mail)
            except smtplib.SMTPDataError as exc:
                return _after_data(exc)
    except smtplib.SMTPRecipientsRefused:
        return Unreachable("recipients_refused")
    except smtplib.SMTPResponseException as exc:
        return Unreachable(f"smtp_{exc.smtp_code}")
    except (smtplib.SMTPException, OSError, UnicodeError) as exc:  # a name that is none, a text that no server takes
        return Unreachable(type(exc).__name__)
    return Delivered()


def _after_data(exc: smtplib.SMTPDataError) -> Ending:
    code = f"smtp_{exc.smtp_code}"
    return Refused(code) if exc.smtp_code >= 500 else Unreachable(code)


def _connected(post: Post) -> smtplib.SMTP:
    timeout = post.timeout.total_seconds()
    if post.tls == "tls":
        server: smtplib.SMTP = smtplib.SMTP_SSL(post.host, post.port, timeout=timeout, context=post.trusted)
    else:
        server = smtplib.SMTP(post.host, post.port, timeout=timeout)
    try:
        if post.tls == "starttls":
            server.starttls(context=post.trusted)
        if post.user and post.password:
            server.login(post.user, post.password.reveal())
    except BaseException:
        with suppress(OSError):
            server.close()
        raise
    return server
