"""`autopost auth status-token`: a token is shown once, kept as a hash, bound to a workspace or to the operator."""

import os
import sys
from asyncio.subprocess import PIPE, create_subprocess_exec
from hashlib import sha256
from typing import Any, NamedTuple
from uuid import UUID

import asyncpg
import msgspec
import pytest
from autopost_cli.development import STATUS_TOKEN, WORKSPACE
from harness.databases import Database

SIGNED = ("--operator", "ann", "--reason", "for the wall")
CREATE = ("create", "--label", "wall", *SIGNED, "--json")


class Ran(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        decoded: dict[str, Any] = msgspec.json.decode(self.out)
        return decoded


async def status_token(database: Database, *words: str) -> Ran:
    process = await create_subprocess_exec(
        *(sys.executable, "-m", "autopost_cli", "auth", "status-token", *words),
        env={"PATH": os.defpath, "AUTOPOST_DATABASE_URL": database.url},
        stdout=PIPE,
        stderr=PIPE,
    )
    out, err = await process.communicate()
    return Ran(process.returncode or 0, out.decode(), err.decode())


async def opens(database: Database, token: str) -> Any:
    """``None`` for nothing, else the workspace, or ``all``."""
    row = await database.pool.fetchrow("SELECT * FROM resolve_status_token($1)", sha256(token.encode()).hexdigest())
    return None if row is None else row["workspace_id"] or "all"


async def test_a_workspaces_token_opens_it_and_only_its_hash_is_kept(seeded_database: Database) -> None:
    ran = await status_token(seeded_database, *CREATE, "--workspace", "demo")

    assert (ran.code, ran.json["verdict"]) == (0, "issued")
    token = ran.json["token"]
    assert await opens(seeded_database, token) == UUID(WORKSPACE)
    dump = [str(row[0]) for row in await seeded_database.pool.fetch("SELECT t::text FROM status_tokens t")]
    dump += [str(row[0]) for row in await seeded_database.pool.fetch("SELECT e::text FROM events e")]
    assert token not in "".join(dump)
    assert len(token) > 40


async def test_the_operators_token_has_to_be_asked_for_by_name(seeded_database: Database) -> None:
    neither = await status_token(seeded_database, *CREATE)
    both = await status_token(seeded_database, *CREATE, "--workspace", "demo", "--all-workspaces")
    ran = await status_token(seeded_database, *CREATE, "--all-workspaces")

    assert (neither.code, both.code) == (2, 2)
    assert "exactly one of --workspace and --all-workspaces" in neither.err
    assert await opens(seeded_database, ran.json["token"]) == "all"


async def test_for_people_the_token_alone_is_on_stdout(seeded_database: Database) -> None:
    words = [word for word in CREATE if word != "--json"]
    ran = await status_token(seeded_database, *words, "--all-workspaces")

    assert await opens(seeded_database, ran.out.strip()) == "all"
    assert "not shown again" in ran.err


async def test_a_label_has_one_living_token(seeded_database: Database) -> None:
    await status_token(seeded_database, *CREATE, "--workspace", "demo")

    again = await status_token(seeded_database, *CREATE, "--workspace", "shop")

    assert (again.code, again.json) == (1, {"dry_run": False, "verdict": "label_taken"})


async def test_a_revoked_token_opens_nothing_and_frees_its_label(seeded_database: Database) -> None:
    token = (await status_token(seeded_database, *CREATE, "--workspace", "demo")).json["token"]

    revoked = await status_token(seeded_database, "revoke", "wall", *SIGNED, "--json")
    again = await status_token(seeded_database, "revoke", "wall", *SIGNED, "--json")

    assert (revoked.code, revoked.json["verdict"]) == (0, "revoked")
    assert (again.code, again.json["verdict"]) == (1, "not_found")
    assert await opens(seeded_database, token) is None
    assert (await status_token(seeded_database, *CREATE, "--workspace", "demo")).code == 0


async def test_a_dry_run_makes_nothing_and_shows_no_token(seeded_database: Database) -> None:
    ran = await status_token(seeded_database, *CREATE, "--workspace", "demo", "--dry-run")

    assert (ran.code, ran.json["verdict"], "token" in ran.json) == (0, "issued", False)
    assert await seeded_database.pool.fetchval("SELECT count(*) FROM status_tokens WHERE label = 'wall'") == 0


async def test_the_list_shows_who_and_until_when_and_no_hash(seeded_database: Database) -> None:
    token = (await status_token(seeded_database, *CREATE, "--workspace", "demo", "--expires", "2h")).json["token"]

    ran = await status_token(seeded_database, "list", "--json")

    [row] = [row for row in ran.json["status_tokens"] if row["label"] == "wall"]
    assert (row["workspace"], row["created_by"], row["reason"]) == ("demo", "ann", "for the wall")
    assert sha256(token.encode()).hexdigest() not in ran.out
    assert "wall" in (await status_token(seeded_database, "list")).out


async def test_issuing_and_revoking_for_a_workspace_leave_their_events(seeded_database: Database) -> None:
    await status_token(seeded_database, *CREATE, "--workspace", "demo")
    await status_token(seeded_database, "revoke", "wall", *SIGNED)

    rows = await seeded_database.pool.fetch(
        "SELECT workspace_id, meta ->> 'change' AS change, meta ->> 'operator' AS operator, "
        "meta ->> 'status_token' AS label FROM events WHERE action = 'auth_rotated' ORDER BY seq"
    )
    assert [tuple(row) for row in rows] == [
        (UUID(WORKSPACE), "issued", "ann", "wall"),
        (UUID(WORKSPACE), "revoked", "ann", "wall"),
    ]


async def test_so_do_those_of_the_operators_under_no_workspace(seeded_database: Database) -> None:
    why = ("--operator", "ann", "--reason", "the wall was sold")
    await status_token(seeded_database, *CREATE, "--all-workspaces")
    await status_token(seeded_database, "revoke", "wall", *why)

    rows = await seeded_database.pool.fetch(
        "SELECT workspace_id, meta ->> 'change' AS change, meta ->> 'reason' AS reason "
        "FROM events WHERE action = 'auth_rotated' ORDER BY seq"
    )
    kept = "SELECT revoked_by, revoked_reason FROM status_tokens WHERE label = 'wall'"
    assert [tuple(row) for row in rows] == [
        (UUID(int=0), "issued", "for the wall"),
        (UUID(int=0), "revoked", "the wall was sold"),
    ]
    assert tuple(await seeded_database.pool.fetchrow(kept) or ()) == ("ann", "the wall was sold")


@pytest.mark.parametrize(
    ("values", "code"),
    [
        (("nothash", None, "x", "1 day", "ann", "why"), "AP011"),
        (("0" * 64, None, " ", "1 day", "ann", "why"), "AP011"),
        (("0" * 64, None, "x", "-1 day", "ann", "why"), "AP011"),
        (("0" * 64, None, "x", "1 day", "", "why"), "AP010"),
    ],
)
async def test_what_cannot_be_meant_is_refused(database: Database, values: tuple[Any, ...], code: str) -> None:
    with pytest.raises(asyncpg.PostgresError) as refused:
        await database.pool.fetchval("SELECT issue_status_token($1, $2, $3, $4::text::interval, $5, $6)", *values)

    assert refused.value.sqlstate == code


async def test_the_tokens_of_the_seed_open_what_is_documented(seeded_database: Database) -> None:
    assert await opens(seeded_database, STATUS_TOKEN) == "all"
    assert await opens(seeded_database, "demo-status-token-for-development") == UUID(WORKSPACE)
    assert await opens(seeded_database, "shop-status-token-for-development") not in (None, "all", UUID(WORKSPACE))
