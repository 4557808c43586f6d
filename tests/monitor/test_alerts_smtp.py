"""The mail target, against a mail server that does as it is told."""

import base64
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from adapters.test_send_tls import Authority
from autopost_monitor.alert_ending import Delivered, Refused, Unreachable
from autopost_monitor.alert_smtp import SmtpTarget
from autopost_runtime.config import Secret
from msgspec.structs import replace

from monitor.alert_stage import ALERT, MailServer, configured, mail_listening, notice

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
        assert await target(server).tell(notice()) == Delivered()

        [mail], [(sender, recipients)] = server.mails, server.envelopes

    assert mail["Subject"] == "autopost: demo: 3 dead deliveries that nobody has looked at"
    assert mail["Message-ID"] == f"<{ALERT}.1@autopost.invalid>"
    assert "News: chat_not_found ×3" in mail.get_content()
    assert "<autopost@example.org>" in sender
    assert [one.split("<")[1].split(">")[0] for one in recipients] == ["ann@example.org", "bob@example.org"]


async def test_what_follows_belongs_to_the_conversation_of_the_first() -> None:
    async with mail_listening() as server:
        await target(server).tell(notice("reminder", step=2))

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
        assert await mail.tell(notice()) == Delivered()

    assert server.secured == 1
    assert base64.b64decode(server.logins[0].split(" ")[2]) == f"\0ann\0{PASSWORD}".encode()


async def test_a_server_whose_certificate_nobody_vouches_for_gets_nothing(tmp_path: Path) -> None:
    async with mail_listening(Authority(tmp_path).server()) as server:
        mail = target(server, alert_smtp_tls="starttls", alert_smtp_user="ann", alert_smtp_password=Secret(PASSWORD))
        ended = await mail.tell(notice())

    assert ended == Unreachable("SSLCertVerificationError")
    assert (server.logins, server.mails) == ([], [])


async def test_a_server_without_starttls_gets_nothing_when_it_is_asked_for() -> None:
    async with mail_listening() as server:
        ended = await target(server, alert_smtp_tls="starttls").tell(notice())

    assert ended == Unreachable("SMTPNotSupportedError")
    assert server.mails == []


@pytest.mark.parametrize(
    ("command", "answer", "ending"),
    [
        ("BODY", "554 spam, says canary", Refused("smtp_554")),
        ("BODY", "451 later, says canary", Unreachable("smtp_451")),
        ("RCPT", "550 nobody of this name, says canary", Unreachable("recipients_refused")),
        ("MAIL", "530 who are you, says canary", Unreachable("smtp_530")),
        ("HELLO", "421 closing, says canary", Unreachable("smtp_421")),
    ],
)
async def test_what_a_server_says_is_told_on_by_its_number_alone(command: str, answer: str, ending: object) -> None:
    async with mail_listening() as server:
        server.answers[command] = answer

        assert await target(server).tell(notice()) == ending


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
        ended = await mail.tell(notice())

    assert ended == Unreachable("smtp_535")


async def test_a_server_that_says_nothing_is_given_up_in_time() -> None:
    async with mail_listening() as server:
        server.answers["HELLO"] = ""

        ended = await target(server, alert_timeout=timedelta(milliseconds=200)).tell(notice())

    assert isinstance(ended, Unreachable)


async def test_nobody_there_is_a_target_that_is_away() -> None:
    async with mail_listening() as server:
        pass

    assert await target(server).tell(notice()) == Unreachable("ConnectionRefusedError")


async def test_a_server_whose_name_is_none_is_a_target_that_is_away() -> None:
    async with mail_listening() as server:
        mail = target(server)
    mail._post = replace(mail._post, host="smtp..example.org")

    assert await mail.tell(notice()) == Unreachable("UnicodeError")


async def test_a_name_with_line_breaks_makes_no_header() -> None:
    async with mail_listening() as server:
        assert await target(server).tell(notice(workspace="demo\r\nBcc: all@example.org")) == Delivered()

        [mail] = server.mails

    assert mail["Bcc"] is None
    assert "demo Bcc: " in mail["Subject"]
