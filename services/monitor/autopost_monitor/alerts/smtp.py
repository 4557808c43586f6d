"""Send notices by mail."""

import asyncio
import socket
import ssl
from contextlib import suppress
from datetime import datetime, timedelta
from email.message import EmailMessage
from email.utils import format_datetime
from typing import Self

import aiosmtplib
from autopost_runtime.config.load import Secret
from autopost_runtime.fetch.tls import trusting
from msgspec import Struct

from autopost_monitor.alerts.config import AlertConfig
from autopost_monitor.alerts.gateway import Notice
from autopost_monitor.alerts.notice_result import NoticeDelivered, NoticeRejected, NoticeResult, TargetUnreachable
from autopost_monitor.alerts.text import NoticeText, notice_text

DOMAIN = "autopost.invalid"
"""Used in message ids only."""

GOODBYE = 1.0
"""Seconds for the answer to QUIT."""


class SmtpServer(Struct, frozen=True, kw_only=True):
    """Address and login of the mail server, and who its mails are from."""

    host: str
    port: int
    tls: str
    user: str | None
    password: Secret | None
    timeout: timedelta
    trusted: ssl.SSLContext
    sender: str

    @classmethod
    def of(cls, config: AlertConfig) -> Self | None:
        if config.alert_smtp_host is None or config.alert_smtp_from is None:
            return None
        return cls(
            host=config.alert_smtp_host,
            port=config.alert_smtp_port,
            tls=config.alert_smtp_tls,
            user=config.alert_smtp_user,
            password=config.alert_smtp_password,
            timeout=config.alert_timeout,
            trusted=trusting(config.ca_bundle),
            sender=config.alert_smtp_from,
        )

    async def send(self, mail: EmailMessage) -> NoticeResult:
        try:
            async with asyncio.timeout(3 * self.timeout.total_seconds()):  # a mail takes several round trips
                return await _send(self, mail)
        except TimeoutError:
            return TargetUnreachable("timeout")


class SmtpTarget:
    name = "smtp"

    def __init__(self, smtp: SmtpServer, recipients: tuple[str, ...]) -> None:
        self._smtp = smtp
        self._recipients = recipients

    @classmethod
    def of(cls, config: AlertConfig) -> Self | None:
        smtp = SmtpServer.of(config)
        if smtp is None or config.alert_smtp_to is None:
            return None
        return cls(smtp, tuple(one.strip() for one in config.alert_smtp_to.split(",") if one.strip()))

    async def send(self, notice: Notice) -> NoticeResult:
        return await self._smtp.send(_mail(notice, self._smtp.sender, self._recipients))


def new_mail(
    sender: str, recipients: tuple[str, ...], words: NoticeText, at: datetime, message_id: str
) -> EmailMessage:
    """``message_id`` is short enough not to be folded: some servers mishandle folded ids."""
    mail = EmailMessage()
    mail["From"] = sender
    mail["To"] = ", ".join(recipients)
    mail["Subject"] = words.subject
    mail["Date"] = format_datetime(at)
    mail["Message-ID"] = f"<{message_id}@{DOMAIN}>"
    mail["Auto-Submitted"] = "auto-generated"
    mail.set_content(f"{words.body}\n")
    return mail


def _mail(notice: Notice, sender: str, recipients: tuple[str, ...]) -> EmailMessage:
    """The notices of one alert form one thread; a repeated notice keeps its message id."""
    mail = new_mail(sender, recipients, notice_text(notice.facts), notice.facts.at, f"{notice.alert_id}.{notice.step}")
    if notice.step > 1:
        mail["References"] = f"<{notice.alert_id}.1@{DOMAIN}>"
    return mail


async def _send(smtp: SmtpServer, mail: EmailMessage) -> NoticeResult:
    name = await asyncio.to_thread(socket.getfqdn)  # a blocking DNS lookup
    server = aiosmtplib.SMTP(
        hostname=smtp.host,
        port=smtp.port,
        local_hostname=name,
        timeout=smtp.timeout.total_seconds(),
        use_tls=smtp.tls == "tls",
        start_tls=False,
        tls_context=smtp.trusted,
    )
    try:
        await _connect(server, smtp)
        await server.send_message(mail)
    except aiosmtplib.SMTPDataError as exc:
        return NoticeRejected(f"smtp_{exc.code}") if exc.code >= 500 else TargetUnreachable(f"smtp_{exc.code}")
    except aiosmtplib.SMTPRecipientsRefused:
        return TargetUnreachable("recipients_refused")
    except aiosmtplib.SMTPResponseException as exc:
        return TargetUnreachable(f"smtp_{exc.code}")
    except (aiosmtplib.SMTPException, OSError, UnicodeError) as exc:  # invalid host name, or text SMTP cannot encode
        return TargetUnreachable(type(exc.__cause__ or exc).__name__)
    else:
        with suppress(aiosmtplib.SMTPException, OSError):  # the mail is accepted: a failed QUIT does not matter
            await server.quit(timeout=GOODBYE)
        return NoticeDelivered()
    finally:
        server.close()


async def _connect(server: aiosmtplib.SMTP, smtp: SmtpServer) -> None:
    """With ``starttls`` the password is sent only after the upgrade to TLS."""
    await server.connect()
    if smtp.tls == "starttls":
        await server.ehlo()
        if not server.supports_extension("starttls"):
            raise aiosmtplib.SMTPNotSupported("STARTTLS")
        await server.starttls()
    if smtp.user and smtp.password:
        await server.login(smtp.user, smtp.password.reveal())
