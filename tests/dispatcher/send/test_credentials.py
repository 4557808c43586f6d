"""From a reference to a token, without a restart when it moves."""

import asyncio
import weakref
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from autopost_contracts.ids import WorkspaceId
from autopost_dispatcher.gateway import Gateway
from autopost_runtime.config.load import ConfigError, Secret
from autopost_runtime.secrets import credentials
from autopost_runtime.secrets.credentials import Credential, Credentials
from autopost_runtime.secrets.sealing import Label, new_key, read_keys
from dispatcher.support.sample_claims import WORKSPACE
from harness.databases import Database
from harness.eventually import eventually
from structlog.testing import capture_logs

TOKEN = "123456789:AAF0canary_canary-canary_canary0123"
NEWS = Label(str(WORKSPACE), "telegram", "news")


class Bindings:
    """``gate`` holds an answer back until it is set; what is answered was looked up before."""

    def __init__(self, secret_ref: str | None, sealed: bytes | None = None, bot_id: str | None = None) -> None:
        self.secret_ref = secret_ref
        self.sealed = sealed
        self.bot_id = bot_id
        self.asked = 0
        self.begun = asyncio.Event()
        self.gate = asyncio.Event()
        self.gate.set()

    async def read_credential(self, workspace: WorkspaceId, platform: str, auth_ref: str) -> Credential | None:
        self.asked += 1
        self.begun.set()
        found = self._found(auth_ref)
        await self.gate.wait()
        return found

    def _found(self, auth_ref: str) -> Credential | None:
        if self.secret_ref is None:
            return None
        return Credential(
            auth_ref=auth_ref,
            secret_ref=self.secret_ref,
            sealed=self.sealed,
            bot_id=self.bot_id,
            rotated_at=datetime.now(UTC),
        )


def sealing_environment() -> tuple[dict[str, str], bytes]:
    """A key, and the token of ``NEWS`` sealed with it."""
    environment = {"AUTOPOST_SECRETS_KEY": new_key().reveal()}
    keys = read_keys(environment)
    assert keys is not None
    return environment, keys.seal(Secret(TOKEN), NEWS)


async def test_a_token_is_found_in_the_environment_and_asked_for_once() -> None:
    bindings = Bindings("env:BOT_TOKEN")
    credentials = Credentials(bindings, {"BOT_TOKEN": "1:a"})

    tokens = [await credentials.token(WORKSPACE, "telegram", "bot") for _ in range(3)]

    assert [token.reveal() for token in tokens if token] == ["1:a"] * 3
    assert bindings.asked == 1


async def test_a_token_is_found_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("1:a\n")

    token = await Credentials(Bindings(f"file:{tmp_path / 'token'}"), {}).token(WORKSPACE, "telegram", "bot")

    assert token is not None
    assert token.reveal() == "1:a"


async def test_a_sealed_token_is_opened_with_the_key() -> None:
    environment, sealed = sealing_environment()

    token = await Credentials(Bindings("sealed", sealed), environment).token(WORKSPACE, "telegram", "news")

    assert token == Secret(TOKEN)


@pytest.mark.parametrize("bot_id", ["1000001", None])
async def test_the_bot_is_told_when_the_binding_knows_it(bot_id: str | None) -> None:
    credentials = Credentials(Bindings("env:BOT_TOKEN", bot_id=bot_id), {"BOT_TOKEN": "1:a"})

    identity = await credentials.identity(WORKSPACE, "max", "bot")

    assert identity is not None
    assert (identity.token, identity.bot_id) == (Secret("1:a"), bot_id)


async def test_concurrent_reads_are_shared() -> None:
    bindings = Bindings("env:BOT_TOKEN")
    credentials = Credentials(bindings, {"BOT_TOKEN": "1:a"})

    tokens = await asyncio.gather(*(credentials.token(WORKSPACE, "telegram", "bot") for _ in range(50)))

    assert tokens == [Secret("1:a")] * 50
    assert bindings.asked == 1


@pytest.mark.parametrize("secret_ref", [None, "env:MISSING", "env:EMPTY", "file:/nowhere/at/all", "sealed"])
async def test_a_credential_that_leads_nowhere_is_none_and_is_asked_for_again(secret_ref: str | None) -> None:
    bindings = Bindings(secret_ref)
    credentials = Credentials(bindings, {"EMPTY": ""})

    assert [await credentials.token(WORKSPACE, "telegram", "bot") for _ in range(2)] == [None, None]
    assert bindings.asked == 2


@pytest.mark.parametrize(
    ("workspace", "platform", "auth_ref"),
    [(WorkspaceId(uuid4()), "telegram", "news"), (WORKSPACE, "max", "news"), (WORKSPACE, "telegram", "other")],
)
async def test_a_sealed_row_copied_elsewhere_is_a_missing_secret(
    workspace: WorkspaceId, platform: str, auth_ref: str
) -> None:
    environment, sealed = sealing_environment()

    assert await Credentials(Bindings("sealed", sealed), environment).token(workspace, platform, auth_ref) is None


@pytest.mark.parametrize(
    ("environment", "secret_ref", "sealed", "reason"),
    [
        ({}, None, None, "no credential is bound"),
        ({}, "env:BOT_TOKEN", None, "BOT_TOKEN is not set"),
        ({}, "file:/nowhere/at/all", None, "/nowhere/at/all cannot be read (No such file or directory)"),
        ({}, "sealed", b"\x01" + TOKEN.encode(), "AUTOPOST_SECRETS_KEY is not set"),
        ({"AUTOPOST_SECRETS_KEY": new_key().reveal()}, "sealed", b"\x01" + TOKEN.encode(), "another key"),
        ({"AUTOPOST_SECRETS_KEY": new_key().reveal()}, "sealed", TOKEN.encode(), "not a sealed secret"),
    ],
)
async def test_a_missing_secret_is_told_with_its_name_and_reason_and_nothing_of_it(
    environment: dict[str, str], secret_ref: str | None, sealed: bytes | None, reason: str
) -> None:
    credentials = Credentials(Bindings(secret_ref, sealed), environment)

    with capture_logs() as logs:
        await credentials.token(WORKSPACE, "telegram", "news")

    [line] = logs
    assert (line["event"], line["auth_ref"], line["platform"]) == ("credential.missing", "news", "telegram")
    assert reason in line["reason"]
    assert "canary" not in str(line)


async def test_a_file_that_is_no_text_is_a_missing_secret(tmp_path: Path) -> None:
    (tmp_path / "token").write_bytes(b"\xff\xfe\x00")

    assert await Credentials(Bindings(f"file:{tmp_path / 'token'}"), {}).token(WORKSPACE, "telegram", "bot") is None


async def test_a_forgotten_token_is_asked_for_again_and_others_are_kept() -> None:
    bindings, environment = Bindings("env:BOT_TOKEN"), {"BOT_TOKEN": "1:old"}
    credentials = Credentials(bindings, environment)
    for auth_ref in ("bot", "other"):
        await credentials.token(WORKSPACE, "telegram", auth_ref)
    environment["BOT_TOKEN"] = "1:new"

    credentials.forget(WORKSPACE, "telegram", "bot")

    assert await credentials.token(WORKSPACE, "telegram", "bot") == Secret("1:new")
    assert await credentials.token(WORKSPACE, "telegram", "other") == Secret("1:old")
    assert bindings.asked == 3


async def test_a_token_that_nobody_uses_any_more_leaves_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(credentials, "REMEMBERED", timedelta(milliseconds=20))
    known = Credentials(Bindings("env:BOT_TOKEN"), {"BOT_TOKEN": "1:a"})

    found = weakref.ref(await known.identity(WORKSPACE, "telegram", "bot"))

    await eventually(lambda: found() is None)


async def test_forgetting_an_unknown_credential_does_nothing() -> None:
    Credentials(Bindings(None), {}).forget(WORKSPACE, "telegram", "bot")


async def test_a_read_that_began_before_the_token_was_forgotten_is_not_remembered() -> None:
    bindings = Bindings("env:OLD")
    credentials = Credentials(bindings, {"OLD": "1:old", "NEW": "1:new"})
    bindings.gate.clear()
    early = asyncio.create_task(credentials.token(WORKSPACE, "telegram", "bot"))
    await bindings.begun.wait()

    bindings.secret_ref = "env:NEW"
    credentials.forget(WORKSPACE, "telegram", "bot")
    bindings.gate.set()

    assert await early == Secret("1:old")
    assert await credentials.token(WORKSPACE, "telegram", "bot") == Secret("1:new")
    assert await credentials.token(WORKSPACE, "telegram", "bot") == Secret("1:new")


async def test_a_database_that_is_away_is_the_error_of_whoever_asked_and_is_asked_again() -> None:
    class Away(Bindings):
        async def read_credential(self, workspace: WorkspaceId, platform: str, auth_ref: str) -> Credential | None:
            if self.asked == 0:
                self.asked += 1
                raise ConnectionRefusedError
            return await super().read_credential(workspace, platform, auth_ref)

    credentials = Credentials(Away("env:BOT_TOKEN"), {"BOT_TOKEN": "1:a"})
    complaints: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, complaint: complaints.append(complaint))

    with pytest.raises(ConnectionRefusedError):
        await credentials.token(WORKSPACE, "telegram", "bot")

    assert await credentials.token(WORKSPACE, "telegram", "bot") == Secret("1:a")
    assert complaints == []


def test_a_key_that_is_none_stops_the_start_and_is_not_shown() -> None:
    with pytest.raises(ConfigError, match="AUTOPOST_SECRETS_KEY") as refused:
        Credentials(Bindings(None), {"AUTOPOST_SECRETS_KEY": "canary"})

    assert "canary" not in str(refused.value)


class TestOverTheDatabase:
    """The bindings as they are stored, by the function that an operator calls."""

    @staticmethod
    async def bind(pool: Any, workspace: Any, label: Label, place: str, sealed: bytes | None, bot: str | None) -> None:
        await pool.execute(
            "SELECT bind_credential($1, $2, $3, $4, $5, $6, 'ann', 'because')",
            *(workspace, label.platform, label.auth_ref, place, sealed, bot),
        )

    async def test_a_rotation_is_found_at_once_after_forgetting(self, database: Database) -> None:
        workspace = await database.pool.fetchval("INSERT INTO workspaces (name) VALUES ('t') RETURNING workspace_id")
        label = Label(str(workspace), "telegram", "news")
        environment = {"AUTOPOST_SECRETS_KEY": new_key().reveal()}
        keys = read_keys(environment)
        assert keys is not None
        credentials = Credentials(Gateway(database.pool), environment)  # type: ignore[arg-type]  # fetchrow is all it needs
        asked = (WorkspaceId(workspace), "telegram", "news")

        await self.bind(database.pool, workspace, label, "sealed", keys.seal(Secret("7:old"), label), "7")
        first = await credentials.identity(*asked)
        await self.bind(database.pool, workspace, label, "sealed", keys.seal(Secret("7:new"), label), "7")
        remembered = await credentials.identity(*asked)
        credentials.forget(*asked)
        second = await credentials.identity(*asked)

        assert first is not None
        assert second is not None
        assert (first.token, remembered, second.token) == (Secret("7:old"), first, Secret("7:new"))

    async def test_a_row_copied_to_another_workspace_does_not_open(self, database: Database) -> None:
        ours, theirs = [
            await database.pool.fetchval("INSERT INTO workspaces (name) VALUES ($1) RETURNING workspace_id", name)
            for name in ("ours", "theirs")
        ]
        label = Label(str(ours), "max", "news")
        environment = {"AUTOPOST_SECRETS_KEY": new_key().reveal()}
        keys = read_keys(environment)
        assert keys is not None
        await self.bind(database.pool, ours, label, "sealed", keys.seal(Secret("token"), label), None)

        await database.pool.execute(
            "INSERT INTO credential_bindings (workspace_id, auth_ref, platform, secret_ref, sealed) "
            "SELECT $1, auth_ref, platform, secret_ref, sealed FROM credential_bindings",
            theirs,
        )
        credentials = Credentials(Gateway(database.pool), environment)  # type: ignore[arg-type]  # fetchrow is all it needs

        assert await credentials.token(WorkspaceId(ours), "max", "news") == Secret("token")
        assert await credentials.token(WorkspaceId(theirs), "max", "news") is None
