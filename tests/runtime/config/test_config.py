"""What config makes of the environment, and what it never shows."""

import copy
import json
import pickle
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import pytest
from autopost_runtime.config.load import (
    ConfigError,
    HttpUrl,
    NatsUrl,
    PostgresUrl,
    Secret,
    ServiceConfig,
    describe,
    load,
)


class Everything(msgspec.Struct, frozen=True, kw_only=True):
    text: str = "text"
    count: Annotated[int, msgspec.Meta(ge=1, le=10)] = 1
    ratio: float = 0.5
    switch: bool = False
    pause: Annotated[timedelta, msgspec.Meta(ge=0.1)] = timedelta(seconds=1)
    key: Secret | None = None
    folder: Path | None = None
    mode: Literal["fast", "slow"] = "fast"
    database: PostgresUrl = "postgresql://localhost/x"
    bus: NatsUrl | None = None
    api: HttpUrl | None = None


def read(**env: str) -> Everything:
    return load(Everything, {f"AUTOPOST_{name.upper()}": value for name, value in env.items()})


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("text", "with spaces ", "with spaces "),
        ("count", "7", 7),
        ("ratio", "0.25", 0.25),
        ("switch", "yes", True),
        ("switch", "OFF", False),
        ("pause", "3", timedelta(seconds=3)),
        ("pause", "250ms", timedelta(milliseconds=250)),
        ("pause", "1.5s", timedelta(seconds=1.5)),
        ("pause", "5m", timedelta(minutes=5)),
        ("pause", "2h", timedelta(hours=2)),
        ("pause", "7d", timedelta(days=7)),
        ("key", "hush", Secret("hush")),
        ("folder", "some/traces", Path("some/traces")),
        ("mode", "slow", "slow"),
        ("database", "postgres://u:p@db:5433/x", "postgres://u:p@db:5433/x"),
        ("database", "postgresql:///x?host=/run/pg", "postgresql:///x?host=/run/pg"),
        ("bus", "nats://a:4222,nats://b:4222", "nats://a:4222,nats://b:4222"),
        ("bus", "off", None),
        ("bus", "", None),
        ("api", "https://api.example", "https://api.example"),
        ("api", "", None),
    ],
)
def test_a_value_is_read_by_the_type_of_its_field(name, text, value):
    assert getattr(read(**{name: text}), name) == value


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("text", "", "empty"),
        ("count", "ten", "whole number"),
        ("count", "1.5", "whole number"),
        ("count", "0", "at least 1"),
        ("count", "11", "at most 10"),
        ("ratio", "much", "number"),
        ("ratio", "nan", "finite"),
        ("switch", "maybe", "true or false"),
        ("pause", "soon", "250ms, 30s, 5m, 2h or 7d"),
        ("pause", "-1s", "250ms, 30s, 5m, 2h or 7d"),
        ("pause", "1ms", "at least 0.1 seconds"),
        ("pause", "99999999999d", "too long"),
        ("key_file", "/nowhere/at/all", "cannot read the file"),
        ("mode", "warp", "fast, slow"),
        ("database", "mysql://db/x", "postgresql"),
        ("database", "db", "postgresql"),
        ("database", "postgresql:///x", "host is missing"),
        ("database", "postgresql://db:port/x", "host or port"),
        ("bus", "http://nats", "nats"),
        ("bus", "nats://a:4222,nats://", "host is missing"),
        ("api", "api.example", "http"),
        ("api", "https://api..example", "host name"),
        ("api", f"https://{'a' * 64}.example", "host name"),
    ],
)
def test_nonsense_is_refused_with_the_variable_and_what_was_expected(name, text, expected):
    with pytest.raises(ConfigError) as refused:
        read(**{name: text})

    (problem,) = refused.value.problems
    assert f"AUTOPOST_{name.upper()}" in problem
    assert expected in problem


def test_every_problem_is_told_at_once():
    with pytest.raises(ConfigError) as refused:
        load(ServiceConfig, {"AUTOPOST_DATABASE_POOL": "many", "AUTOPOST_HEALTH_PORT": "70000"})

    text = str(refused.value)
    assert len(refused.value.problems) == 3
    assert all(f"AUTOPOST_{name}" in text for name in ("DATABASE_URL", "DATABASE_POOL", "HEALTH_PORT"))


def test_a_missing_value_says_what_is_expected():
    with pytest.raises(ConfigError, match=r"AUTOPOST_DATABASE_URL is not set; expected a URL like postgresql://"):
        load(ServiceConfig, {})


def test_a_file_gives_the_value_without_its_last_newline(tmp_path):
    (tmp_path / "key").write_text("two\nlines\n")

    assert read(key_file=str(tmp_path / "key")).key == Secret("two\nlines")


def test_a_variable_and_its_file_together_are_refused(tmp_path):
    with pytest.raises(ConfigError, match="AUTOPOST_KEY and AUTOPOST_KEY_FILE are both set"):
        read(key="hush", key_file=str(tmp_path))


def test_an_empty_role_is_no_role():
    class Ingest(ServiceConfig, frozen=True, kw_only=True):
        database_role: str | None = "autopost_ingest"

    url = {"AUTOPOST_DATABASE_URL": "postgresql://db/x"}

    assert load(Ingest, url).database_role == "autopost_ingest"
    assert load(Ingest, url | {"AUTOPOST_DATABASE_ROLE": ""}).database_role is None


@pytest.mark.parametrize("url", ["mysql://u:hunter2@db/x", "postgresql://u:hunter2@db:hunter2/x"])
def test_a_refused_url_does_not_show_its_password(url):
    with pytest.raises(ConfigError) as refused:
        read(database=url)

    assert "hunter2" not in str(refused.value)


def test_a_secret_does_not_print():
    secret = Secret("hunter2")

    shown = [repr(secret), str(secret), f"{secret}", f"{secret:>9}", f"{secret!r}", "%s" % secret, repr([secret])]  # noqa: UP031
    assert not any("hunter2" in text for text in shown)
    assert secret.reveal() == "hunter2"


def test_a_secret_cannot_be_serialised():
    secret = Secret("hunter2")

    for serialise in (pickle.dumps, copy.deepcopy, msgspec.json.encode, msgspec.msgpack.encode, json.dumps, hash):
        with pytest.raises(TypeError):
            serialise(secret)


def test_secrets_compare_by_value_and_only_with_secrets():
    assert Secret("a") == Secret("a")
    assert Secret("a") != Secret("b")
    assert Secret("a") != "a"


def test_an_empty_secret_is_refused():
    with pytest.raises(ValueError, match="empty"):
        Secret("")


def test_what_config_show_prints_has_no_secret_and_no_password():
    config = ServiceConfig(
        database_url="postgresql://ingest:hunter2@db/autopost",
        nats_url="nats://svc:hunter2@nats:4222",
        s3_secret_key=Secret("hunter2"),
    )

    shown = describe(config)

    assert "hunter2" not in str(shown) + repr(config) + str(config)
    assert shown["AUTOPOST_DATABASE_URL"] == "postgresql://ingest:***@db/autopost"
    assert shown["AUTOPOST_S3_SECRET_KEY"] == "***"
    assert shown["AUTOPOST_COMMAND_TIMEOUT"] == "10s"
    assert shown["AUTOPOST_TRACE_DIR"] == "(not set)"
