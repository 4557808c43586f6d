"""`autopost auth`: tokens go in by stdin, come out nowhere, and open for the dispatcher."""

import asyncio
import base64
import os
import sys
from asyncio.subprocess import PIPE, create_subprocess_exec
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

import msgspec
import pytest
from autopost_cli.development import WORKSPACE
from autopost_runtime.config.load import Secret
from autopost_runtime.secrets.sealing import Label, new_key, read_keys
from autopost_simulator import Simulator, listening
from harness.databases import Database

TOKEN = "123456789:AAF0canary_canary-canary_canary0123"
SHOP = "5f000000-0000-4000-8000-000000000002"
SIGNED = ("--operator", "ann", "--reason", "leaked")
NEWS = ("--workspace", WORKSPACE, "--platform", "telegram", "--auth-ref", "news", *SIGNED)


class Ran(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        decoded: dict[str, Any] = msgspec.json.decode(self.out)
        return decoded


class Autopost:
    """The command as an operator runs it, with a key in its environment."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.env = {"PATH": os.defpath, "AUTOPOST_DATABASE_URL": database.url}
        self.env["AUTOPOST_SECRETS_KEY"] = new_key().reveal()

    async def auth(self, *words: str, stdin: str = "") -> Ran:
        process = await create_subprocess_exec(
            *(sys.executable, "-m", "autopost_cli", "auth", *words), env=self.env, stdin=PIPE, stdout=PIPE, stderr=PIPE
        )
        out, err = await process.communicate(stdin.encode())
        return Ran(process.returncode or 0, out.decode(), err.decode())

    async def stored(self, auth_ref: str = "news") -> dict[str, Any]:
        row = await self.database.pool.fetchrow("SELECT * FROM credential_bindings WHERE auth_ref = $1", auth_ref)
        return dict(row or {})

    def opened(self, sealed: bytes, label: Label) -> Secret:
        keys = read_keys(self.env)
        assert keys is not None
        return keys.open(sealed, label)


@pytest.fixture
def autopost(seeded_database: Database) -> Autopost:
    return Autopost(seeded_database)


@pytest.mark.parametrize("ending", ["", "\n", "\r\n"])
async def test_a_sealed_token_opens_in_its_place_and_names_its_bot(autopost: Autopost, ending: str) -> None:
    ran = await autopost.auth("bind", *NEWS, "--sealed", "--json", stdin=TOKEN + ending)

    row = await autopost.stored()
    assert (ran.code, ran.json) == (0, {"verdict": "bound"})
    assert autopost.opened(row["sealed"], Label(WORKSPACE, "telegram", "news")) == Secret(TOKEN)
    assert (row["workspace_id"], row["secret_ref"], row["bot_id"]) == (UUID(WORKSPACE), "sealed", "123456789")


@pytest.mark.parametrize(
    ("place", "secret_ref"),
    [(("--env", "NEWS_TOKEN"), "env:NEWS_TOKEN"), (("--file", "/run/secrets/news"), "file:/run/secrets/news")],
)
async def test_a_place_is_bound_and_needs_no_key(autopost: Autopost, place: tuple[str, str], secret_ref: str) -> None:
    """The bot is not stored on anybody's word: who can read the token finds it out."""
    del autopost.env["AUTOPOST_SECRETS_KEY"]

    ran = await autopost.auth("bind", *NEWS, *place, "--bot-id", "42")

    row = await autopost.stored()
    assert (ran.code, ran.out) == (0, f"news: bound, {secret_ref}\n")
    assert (row["secret_ref"], row["sealed"], row["bot_id"]) == (secret_ref, None, None)


async def test_a_rotation_is_signed_in_the_log_and_the_token_is_nowhere(autopost: Autopost) -> None:
    first = await autopost.auth("bind", *NEWS, "--env", "NEWS_TOKEN", "--json")
    second = await autopost.auth("bind", *NEWS, "--sealed", "--json", stdin=TOKEN)
    listed = [await autopost.auth("list", "--workspace", WORKSPACE, *json) for json in ((), ("--json",))]

    events = await autopost.database.pool.fetch("SELECT * FROM events WHERE action = 'auth_rotated' ORDER BY seq")
    assert second.json == {"verdict": "rotated", "old_secret_ref": "env:NEWS_TOKEN"}
    assert msgspec.json.decode(events[-1]["meta"]) == {
        "operator": "ann",
        "reason": "leaked",
        "platform": "telegram",
        "auth_ref": "news",
        "old_secret_ref": "env:NEWS_TOKEN",
        "new_secret_ref": "sealed",
        "trace_id": None,
        "run_id": None,
    }
    assert "canary" not in f"{first} {second} {listed} {events} {await autopost.stored()}"


async def test_the_list_shows_where_each_token_is_stored(autopost: Autopost) -> None:
    await autopost.auth("bind", *NEWS, "--sealed", stdin=TOKEN)

    text = await autopost.auth("list", "--workspace", WORKSPACE)
    listed = (await autopost.auth("list", "--workspace", WORKSPACE, "--json")).json["credentials"]

    lines = [line.split()[:4] for line in text.out.splitlines()]
    assert lines == [
        ["PLATFORM", "AUTH_REF", "SECRET", "BOT"],
        ["max", "demo-max", "env:AUTOPOST_DEMO_MAX_TOKEN", "-"],
        ["telegram", "demo-telegram", "env:AUTOPOST_DEMO_TELEGRAM_TOKEN", "-"],
        ["telegram", "news", "sealed", "123456789"],
    ]
    assert [one["auth_ref"] for one in listed] == ["demo-max", "demo-telegram", "news"]
    assert set(listed[0]) == {"platform", "auth_ref", "secret_ref", "bot_id", "rotated_at"}


async def test_a_bot_bound_in_another_workspace_is_refused_in_words_and_by_exit_code(autopost: Autopost) -> None:
    theirs = ("--workspace", SHOP, "--platform", "telegram", "--auth-ref", "shop", *SIGNED)
    await autopost.auth("bind", *theirs, "--sealed", stdin=TOKEN)

    text = await autopost.auth("bind", *NEWS, "--sealed", stdin=TOKEN)
    json = await autopost.auth("bind", *NEWS, "--sealed", "--json", stdin=TOKEN)

    assert (text.code, json.code, json.json) == (1, 1, {"verdict": "bot_taken"})
    assert "bound in another workspace" in text.err
    assert SHOP not in text.err
    assert await autopost.stored() == {}


@pytest.mark.parametrize("kind", ["env", "file"])
async def test_a_bot_in_a_place_that_can_be_read_is_refused_in_a_second_workspace(
    autopost: Autopost, tmp_path: Path, kind: str
) -> None:
    autopost.env["NEWS_TOKEN"] = TOKEN
    (tmp_path / "token").write_text(TOKEN + "\n")
    place = ("--env", "NEWS_TOKEN") if kind == "env" else ("--file", str(tmp_path / "token"))
    theirs = ("--workspace", SHOP, "--platform", "telegram", "--auth-ref", "shop", *SIGNED)

    first = await autopost.auth("bind", *theirs, *place, "--json")
    second = await autopost.auth("bind", *NEWS, *place, "--json")
    other = await autopost.auth("bind", *NEWS, *place, "--bot-id", "5")

    assert (first.json, second.code, second.json) == ({"verdict": "bound"}, 1, {"verdict": "bot_taken"})
    assert (await autopost.stored("shop"))["bot_id"] == "123456789"
    assert (other.code, "does not match the bot of this token" in other.err) == (2, True)
    assert "canary" not in f"{first} {second} {other}"


async def test_max_is_asked_whose_token_it_is_and_a_silent_one_leaves_it_to_the_dispatcher(autopost: Autopost) -> None:
    words = ["max" if word == "telegram" else word for word in NEWS]
    async with listening(Simulator(open_to_all=True)) as simulator:
        autopost.env["AUTOPOST_MAX_API_URL"] = f"{simulator}/max"
        asked = await autopost.auth("bind", *words, "--sealed", stdin="max-canary-token")
        bot = (await autopost.stored())["bot_id"]
    autopost.env["AUTOPOST_MAX_API_URL"] = "http://127.0.0.1:9"
    silent = await autopost.auth("bind", *words, "--sealed", stdin="max-canary-token")

    assert (asked.code, silent.code) == (0, 0)
    assert bot is not None and bot.isdigit()
    assert (await autopost.stored())["bot_id"] is None
    assert "The dispatcher detects" in silent.err
    assert "canary" not in f"{asked} {silent}"


async def test_a_bot_bound_here_under_another_name_is_named(autopost: Autopost) -> None:
    await autopost.auth("bind", *NEWS, "--sealed", stdin=TOKEN)

    again = [word if word != "news" else "other" for word in NEWS]
    ran = await autopost.auth("bind", *again, "--sealed", stdin=TOKEN)

    assert ran.code == 1
    assert "already bound here as news" in ran.err


async def test_an_unknown_workspace_is_reported(autopost: Autopost) -> None:
    words = ["00000000-0000-4000-8000-000000000000" if word == WORKSPACE else word for word in NEWS]

    ran = await autopost.auth("bind", *words, "--env", "NEWS_TOKEN")

    assert (ran.code, "workspace not found" in ran.err) == (1, True)


@pytest.mark.parametrize(
    ("words", "stdin", "said"),
    [
        ((), "", "exactly one of --env, --file and --sealed"),
        (("--sealed", "--env", "X"), TOKEN, "exactly one of --env, --file and --sealed"),
        (("--env", TOKEN), "", "the name of an environment variable"),
        (("--file", "token"), "", "an absolute path"),
        (("--sealed",), "", "on one line, without spaces"),
        (("--sealed",), f"{TOKEN}\n{TOKEN}\n", "on one line, without spaces"),
        (("--sealed", "--bot-id", "5"), TOKEN, "does not match the bot of this token"),
    ],
)
async def test_invalid_options_are_refused_without_repeating_a_token(
    autopost: Autopost, words: tuple[str, ...], stdin: str, said: str
) -> None:
    ran = await autopost.auth("bind", *NEWS, *words, stdin=stdin)

    assert ran.code == 2
    assert said in " ".join(ran.err.split())
    assert "canary" not in ran.out + ran.err
    assert await autopost.stored() == {}


@pytest.mark.parametrize("key", [None, "canary"])
async def test_to_seal_one_needs_a_key(autopost: Autopost, key: str | None) -> None:
    del autopost.env["AUTOPOST_SECRETS_KEY"]
    autopost.env |= {"AUTOPOST_SECRETS_KEY": key} if key else {}

    ran = await autopost.auth("bind", *NEWS, "--sealed", stdin=TOKEN)

    assert ran.code == 1
    assert "AUTOPOST_SECRETS_KEY" in ran.err
    assert "canary" not in ran.out + ran.err


async def test_without_operator_or_reason_it_is_refused(autopost: Autopost) -> None:
    unsigned = [word for word in NEWS if word not in SIGNED]
    blank = [" " if word == "leaked" else word for word in NEWS]

    missing, empty = [await autopost.auth("bind", *words, "--env", "X") for words in (unsigned, blank)]

    assert (missing.code, "--operator" in missing.err) == (2, True)
    assert (empty.code, "--reason" in empty.err) == (2, True)


async def test_a_fresh_key_is_32_bytes_and_new_each_time(autopost: Autopost) -> None:
    text, json = await asyncio.gather(autopost.auth("key"), autopost.auth("key", "--json"))

    keys = {base64.b64decode(text.out.strip(), validate=True), base64.b64decode(json.json["key"], validate=True)}
    assert [len(key) for key in keys] == [32, 32]


async def test_every_part_explains_itself(autopost: Autopost) -> None:
    ran = [await autopost.auth(*words, "--help") for words in ((), ("bind",), ("list",), ("key",))]

    assert [one.code for one in ran] == [0] * 4
    assert all("--json" in one.out for one in ran[1:])
