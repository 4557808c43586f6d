"""What a log line looks like, and what never gets into one."""

import json
import logging
from collections.abc import Callable, Iterator

import pytest
import structlog
from autopost_runtime.secrets.redaction import names_a_secret, redact
from autopost_runtime.telemetry import logs
from autopost_runtime.telemetry.logs import Redactor, add_trace
from autopost_runtime.telemetry.tracing import context_from
from opentelemetry import context
from runtime.support.canary import CANARY
from structlog.typing import FilteringBoundLogger

Say = Callable[[FilteringBoundLogger], object]
URL = f"https://host/bot{CANARY}/getMe"
LIBRARY = logging.getLogger("some.library")


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]) -> Iterator[Callable[..., str]]:
    """What is printed by someone who logs; logging is put back as it was."""
    root, handlers, level = logging.getLogger(), logging.getLogger().handlers[:], logging.getLogger().level
    levels = {name: logging.getLogger(name).level for name in logs.QUIET}

    def listen(say: Say, log_format: logs.LogFormat = "json") -> str:
        logs.setup("test", log_format)
        say(logs.get_logger())
        return capsys.readouterr().out

    yield listen
    structlog.reset_defaults()
    logging.captureWarnings(False)
    root.handlers[:] = handlers
    for name, before in {"": level, **levels}.items():
        logging.getLogger(name).setLevel(before)


def failing(text: str) -> Exception:
    try:
        raise ValueError(text)
    except ValueError as exc:
        return exc


def test_a_line_is_json_with_time_level_event_and_service(printed):
    (line,) = printed(lambda log: log.info("delivery.attempted", attempt=2, took=0.25)).splitlines()

    entry = json.loads(line)
    assert list(entry)[:3] == ["time", "level", "event"]
    assert entry | {"time": ""} == {
        "time": "",
        "level": "info",
        "event": "delivery.attempted",
        "attempt": 2,
        "took": 0.25,
        "service": "test",
    }


def test_what_libraries_log_takes_the_same_path(printed):
    (line,) = printed(lambda _: LIBRARY.warning("lost %s", "it")).splitlines()

    entry = json.loads(line)
    assert (entry["event"], entry["level"], entry["logger"]) == ("lost it", "warning", "some.library")


@pytest.mark.parametrize("name", ["httpx", "httpcore", "aiobotocore", "botocore", "nats", "aiohttp.access"])
def test_talkative_libraries_are_heard_from_warning_up(name, printed):
    assert printed(lambda _: logging.getLogger(name).info("https://host/bot%s/x", CANARY)) == ""
    assert printed(lambda _: logging.getLogger(name).warning("look")) != ""


@pytest.mark.parametrize("log_format", ["json", "console"])
@pytest.mark.parametrize(
    "say",
    [
        lambda log: log.info(URL),
        lambda log: log.info("x", url=URL),
        lambda log: log.info("x", deep={"list": [CANARY]}),
        lambda log: log.info("x", deep={CANARY: 1}),
        lambda log: log.info("x", token=CANARY),
        lambda log: log.info("x", headers={"Authorization": f"Bearer {CANARY}"}),
        lambda log: log.error("x", exc_info=failing(CANARY)),
        lambda _: LIBRARY.error("https://host/bot%s/getMe", CANARY),
        lambda _: LIBRARY.error("x", exc_info=failing(f"/bot{CANARY}/")),
    ],
    ids=["event", "field", "deep", "key", "name", "header", "exception", "library", "library exception"],
)
def test_a_token_never_reaches_a_line(say, log_format, printed):
    said = printed(say, log_format)

    assert said
    assert CANARY.split(":")[1] not in said


@pytest.mark.parametrize("log_format", ["json", "console"])
@pytest.mark.parametrize("breaker", ["\n", "\r", "\x1b[2K", "\u2028", "\x85", "\u202e"])
def test_a_payload_cannot_start_a_line_of_its_own(breaker, log_format, printed):
    forged = f'a{breaker}{{"level":"error"}}'

    said = printed(lambda log: log.info(forged, text=forged), log_format)

    assert len(said.splitlines()) == 1
    assert breaker not in said.rstrip("\n")


class Mute:
    """Cannot say what it is."""

    def __str__(self) -> str:
        raise ValueError("no words")


class Silent(Exception):  # noqa: N818  named for what it does
    def __str__(self) -> str:
        raise ValueError("no words")


@pytest.mark.parametrize("log_format", ["json", "console"])
@pytest.mark.parametrize(
    "say",
    [
        lambda log: log.info("a\ud800"),
        lambda log: log.info("x", text="a\ud800"),
        lambda log: log.info("x", deep={"\ud800": ["\udfff"]}),
        lambda log: log.error("x", exc_info=failing("\ud800")),
        lambda log: log.info("x", value=Mute()),
        lambda log: log.info("x", deep={"list": [Mute()]}),
        lambda log: log.info("x", number=10**5000),
        lambda log: log.info("x", deep={"list": [-(10**5000)]}),
        lambda log: log.error("x", exc_info=Silent()),
        lambda _: LIBRARY.error("a %s", "\ud800"),
    ],
    ids=[
        "event",
        "field",
        "key",
        "exception",
        "object",
        "deep object",
        "number",
        "deep number",
        "silent exception",
        "library",
    ],
)
def test_what_cannot_be_told_never_fails_whoever_logs_it(say, log_format, printed):
    said = printed(say, log_format)

    assert len(said.encode().splitlines()) == 1


def test_an_exception_is_told_by_type_message_and_place(printed):
    (line,) = printed(lambda log: log.error("sum.failed", exc_info=failing("no sum"))).splitlines()

    error = json.loads(line)["error"]
    assert (error["type"], error["message"]) == ("ValueError", "no sum")
    assert error["at"][0].startswith("test_logs.py:")


def test_a_line_names_the_trace_it_belongs_to():
    token = context.attach(context_from(f"00-{'a' * 32}-{'b' * 16}-01"))
    entry = add_trace(None, "info", {})
    context.detach(token)

    assert entry == {"trace_id": "a" * 32, "span_id": "b" * 16}


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        (f"https://api.telegram.org/bot{CANARY}/sendMessage", "https://api.telegram.org/bot***/sendMessage"),
        (f"token {CANARY} leaked", "token *** leaked"),
        (CANARY.replace(":", "%3A"), "***"),
        ("Authorization: Bearer abc.def", "Authorization: Bearer ***"),
        ("authorization=abc", "authorization=***"),
        ("bearer abc", "bearer ***"),
        ("BEARER abc", "BEARER ***"),
        ("postgresql://u:hun@ter2@db/x", "postgresql://u:***@db/x"),
        ("postgresql://u:hunter2@db/x", "postgresql://u:***@db/x"),
        ("https://host/x?access_token=abc&y=1", "https://host/x?access_token=***&y=1"),
        ("a plain sentence: 12:30, robots /bottom/", "a plain sentence: 12:30, robots /bottom/"),
    ],
)
def test_secrets_are_recognised_by_their_look(text, clean):
    assert redact(text) == clean


@pytest.mark.parametrize("name", ["token", "bot_token", "Authorization", "X-Secret", "client_secret", "password"])
def test_secrets_are_recognised_by_their_name(name):
    assert names_a_secret(name)
    assert Redactor()(None, "info", {name: "whatever"}) == {name: "***"}


def test_a_claim_token_is_an_id_and_may_be_logged():
    assert not names_a_secret("claim_token")
