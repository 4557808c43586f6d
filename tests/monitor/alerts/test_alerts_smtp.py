"""The mail target, against a mail server that does as it is told."""

import asyncio
import base64
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from adapters.test_send_tls import Authority
from autopost_monitor.alerts.notice_result import NoticeDelivered, NoticeRejected, TargetUnreachable
from autopost_monitor.alerts.smtp import SmtpTarget
from autopost_runtime.config.load import Secret
from monitor.support.alert_targets import ALERT, MailServer, configured, mail_listening, notice
from msgspec.structs import replace

PASSWORD = "canary-password"


def target(server: MailServer, **settings: Any) -> SmtpTarget:
    given = {
        "alert_smtp_host": "127.0.0.1",
        "alert_smtp_port": server.port,
        "alert_smtp_tls": "off",
        "alert_smtp_from": "autopost@example.org",
        "alert_smtp_to": "ann@example.org, bob@example.org",
    }
    made = SmtpTarget.of(configured(**(given | settings)))
    assert made is not None
    return made


async def test_an_alert_is_a_mail_to_everybody_named() -> None:
    async with mail_listening() as server:
        assert await target(server).send(notice()) == NoticeDelivered()

        [mail], [(sender, recipients)] = server.mails, server.envelopes

    assert mail["Subject"] == "autopost: demo: 3 dead deliveries not reviewed yet"
    assert mail["Message-ID"] == f"<{ALERT}.1@autopost.invalid>"
    assert "News: chat_not_found ×3" in mail.get_content()
    assert "<autopost@example.org>" in sender
    assert [one.split("<")[1].split(">")[0] for one in recipients] == ["ann@example.org", "bob@example.org"]


async def test_what_follows_belongs_to_the_conversation_of_the_first() -> None:
    async with mail_listening() as server:
        await target(server).send(notice("reminder", step=2))

        [mail] = server.mails

    assert mail["References"] == f"<{ALERT}.1@autopost.invalid>"


async def test_with_starttls_the_password_is_sent_only_under_cover(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    async with mail_listening(authority.server()) as server:
        mail = target(
            server,
            alert_smtp_tls="starttls",
            alert_smtp_user="ann",
            alert_smtp_password=Secret(PASSWORD),
            ca_bundle=authority.bundle,
        )
        assert await mail.send(notice()) == NoticeDelivered()

    assert server.secured == 1
    assert base64.b64decode(server.logins[0].split(" ")[2]) == f"\0ann\0{PASSWORD}".encode()


async def test_a_server_whose_certificate_nobody_vouches_for_gets_nothing(tmp_path: Path) -> None:
    async with mail_listening(Authority(tmp_path).server()) as server:
        mail = target(server, alert_smtp_tls="starttls", alert_smtp_user="ann", alert_smtp_password=Secret(PASSWORD))
        ended = await mail.send(notice())

    assert ended == TargetUnreachable("SSLCertVerificationError")
    assert (server.logins, server.mails) == ([], [])


async def test_a_server_without_starttls_gets_nothing_when_it_is_asked_for() -> None:
    async with mail_listening() as server:
        ended = await target(server, alert_smtp_tls="starttls").send(notice())

    assert ended == TargetUnreachable("SMTPNotSupported")
    assert server.mails == []


@pytest.mark.parametrize(
    ("command", "answer", "ending"),
    [
        ("BODY", "554 spam, says canary", NoticeRejected("smtp_554")),
        ("BODY", "451 later, says canary", TargetUnreachable("smtp_451")),
        ("RCPT", "550 nobody of this name, says canary", TargetUnreachable("recipients_refused")),
        ("MAIL", "530 who are you, says canary", TargetUnreachable("smtp_530")),
        ("HELLO", "421 closing, says canary", TargetUnreachable("smtp_421")),
    ],
)
async def test_what_a_server_says_is_told_on_by_its_number_alone(command: str, answer: str, ending: object) -> None:
    async with mail_listening() as server:
        server.answers[command] = answer

        assert await target(server).send(notice()) == ending


async def test_a_wrong_password_is_a_target_that_is_away_and_is_not_told_on(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    async with mail_listening(authority.server()) as server:
        server.answers["AUTH"] = f"535 {PASSWORD} is wrong"
        mail = target(
            server,
            alert_smtp_tls="starttls",
            alert_smtp_user="ann",
            alert_smtp_password=Secret(PASSWORD),
            ca_bundle=authority.bundle,
        )
        ended = await mail.send(notice())

    assert ended == TargetUnreachable("smtp_535")


async def test_a_server_that_says_nothing_is_given_up_in_time() -> None:
    async with mail_listening() as server:
        server.answers["HELLO"] = ""

        ended = await target(server, alert_timeout=timedelta(milliseconds=200)).send(notice())

    assert isinstance(ended, TargetUnreachable)


async def test_a_server_that_drips_is_given_up_in_time_and_the_next_mail_is_tried() -> None:
    gone = asyncio.Semaphore(0)

    async def drip(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while not writer.is_closing():
                writer.write(b"2")
                await writer.drain()
                await asyncio.sleep(0.01)
        writer.close()
        gone.release()

    async with await asyncio.start_server(drip, "127.0.0.1", 0) as dripping:
        server = MailServer()
        server.port = dripping.sockets[0].getsockname()[1]
        mail = target(server, alert_timeout=timedelta(milliseconds=200))

        ended = [await mail.send(notice()) for _ in range(2)]
        for _ in ended:
            await asyncio.wait_for(gone.acquire(), 10)

    assert [type(one) for one in ended] == [TargetUnreachable] * 2
    assert TargetUnreachable("still_sending") not in ended


async def test_a_mail_that_was_taken_is_delivered_though_the_server_says_no_goodbye() -> None:
    async with mail_listening() as server:
        server.answers["QUIT"] = ""

        assert await target(server).send(notice()) == NoticeDelivered()

    assert len(server.mails) == 1


async def test_nobody_there_is_a_target_that_is_away() -> None:
    async with mail_listening() as server:
        pass

    assert await target(server).send(notice()) == TargetUnreachable("ConnectionRefusedError")


async def test_a_server_whose_name_is_none_is_a_target_that_is_away() -> None:
    async with mail_listening() as server:
        mail = target(server)
    mail._smtp = replace(mail._smtp, host="smtp..example.org")

    assert await mail.send(notice()) == TargetUnreachable("UnicodeError")


async def test_a_name_with_line_breaks_makes_no_header() -> None:
    async with mail_listening() as server:
        assert await target(server).send(notice(workspace="demo\r\nBcc: all@example.org")) == NoticeDelivered()

        [mail] = server.mails

    assert mail["Bcc"] is None
    assert "demo Bcc: " in mail["Subject"]
