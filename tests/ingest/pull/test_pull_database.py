"""Pull a database: one query, read only, in bounds, and a cursor that passes nothing by."""

import asyncio
import gc
import socket
import tracemalloc
from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import pytest
from autopost_ingest.pull.import_items import ImportLimits
from autopost_ingest.pull.parsing.reader import DocumentReader
from autopost_ingest.pull.sources.fetch_document import Budget
from autopost_runtime.fetch.dns import Names
from harness.databases import Database
from harness.watched_service import Probe
from ingest.support.pull_setup import Pulls, Replica

QUERY = "SELECT id, title, body FROM articles WHERE id > $1 ORDER BY id"
SOURCE: dict[str, Any] = {
    "dsn_ref": "their-database",
    "query": QUERY,
    "fields": {"id": "id", "title": "title", "text": "body"},
    "cursor": {"column": "id", "start": 0},
}


@pytest.fixture
async def pulls(database: Database) -> Pulls:
    """The database that is pulled is the test's own: it has a table more."""
    made = await Pulls.create(database)
    await made.sql("CREATE TABLE articles (id bigint, title text, body text, at timestamptz DEFAULT now())")
    await made.bind("their-database", "env:DSN")
    return made


async def write(pulls: Pulls, first: int, last: int, at: str = "2026-11-09") -> None:
    await pulls.sql(
        "INSERT INTO articles SELECT n, 'Title ' || n, 'a < b', $3::text::timestamptz "
        "FROM generate_series($1::int, $2::int) AS n",
        *(first, last, at),
    )


def replica(pulls: Pulls, **options: Any) -> Any:
    return pulls.replica(environment={"DSN": pulls.database.url}, **options)


async def test_rows_become_posts_and_the_cursor_follows(pulls: Pulls) -> None:
    await write(pulls, 1, 3)
    await pulls.add("db", "db", **SOURCE)

    async with replica(pulls) as one:
        await one.puller.round()
        first = await pulls.cursor()
        await write(pulls, 4, 5)
        await pulls.again(one)

    assert (first, await pulls.cursor()) == ({"last_seen": 3}, {"last_seen": 5})
    assert (await pulls.texts())[0] == "<b>Title 1</b>\n\na &lt; b"
    assert await pulls.refs() == ["1", "2", "3", "4", "5"]


async def test_what_a_cap_cuts_off_is_read_at_once_by_the_next_pull(pulls: Pulls) -> None:
    await write(pulls, 1, 10)
    await pulls.add("db", "db", **SOURCE, rows=4)

    async with replica(pulls) as one:
        rounds = [await one.puller.round() for _ in range(5)]

    assert rounds == [1, 1, 1, 0, 0]
    assert len(await pulls.refs()) == 10


async def _until_done(pulls: Pulls, one: Replica) -> None:
    while await one.puller.round():
        pass


async def test_rows_that_share_a_value_of_the_cursor_are_not_parted_by_a_cap(pulls: Pulls) -> None:
    for day, (first, last) in {"2026-11-09": (1, 3), "2026-11-10": (4, 6), "2026-11-11": (7, 7)}.items():
        await write(pulls, first, last, day)
    query = "SELECT id, title, at FROM articles WHERE at > $1 ORDER BY at"
    cursor = {"column": "at", "start": "2026-01-01T00:00:00+00:00"}
    await pulls.add("db", "db", **{**SOURCE, "query": query, "cursor": cursor, "rows": 4})

    async with replica(pulls) as one:
        await _until_done(pulls, one)

    assert await pulls.refs() == ["1", "2", "3", "4", "5", "6", "7"]
    assert await pulls.cursor() == {"last_seen": "2026-11-11T00:00:00Z"}


async def test_between_chunks_the_cursor_stays_behind_what_is_still_to_come(pulls: Pulls) -> None:
    """Three share a value, the chunk ends in the middle of them: whoever dies there reads all three again."""
    for day, (first, last) in {"2026-11-09": (1, 1), "2026-11-10": (2, 4)}.items():
        await write(pulls, first, last, day)
    query = "SELECT id, title, at FROM articles WHERE at > $1 ORDER BY at, id"
    cursor = {"column": "at", "start": "2026-01-01T00:00:00+00:00"}
    await pulls.add("db", "db", **{**SOURCE, "query": query, "cursor": cursor})
    await pulls.sql("ALTER TABLE pull_cursors ADD COLUMN was jsonb[] DEFAULT '{}'")
    await pulls.sql(
        "CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN NEW.was := array_append(OLD.was, OLD.cursor_json); RETURN NEW; END $$"
    )
    await pulls.sql("GRANT EXECUTE ON FUNCTION keep TO PUBLIC")
    await pulls.sql("CREATE TRIGGER keep BEFORE UPDATE ON pull_cursors FOR EACH ROW EXECUTE FUNCTION keep()")

    async with replica(pulls, limits=ImportLimits(chunk=2)) as one:
        await one.puller.round()

    assert await pulls.sql("SELECT was[1]::text FROM pull_cursors") == '{"last_seen": "2026-11-09T00:00:00Z"}'
    assert await pulls.cursor() == {"last_seen": "2026-11-10T00:00:00Z"}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"query": "SELECT * FROM nowhere WHERE id > $1"}, "nowhere"),
        ({"query": "SELECT id FROM articles"}, "$1"),
        ({"query": "SELECT id FROM articles WHERE id > $1 AND id < $2"}, "$1"),
        ({"query": "SELECT id, title FROM articles WHERE id > $1 ORDER BY id DESC"}, "order"),
        ({"query": "SELECT title FROM articles WHERE id > $1"}, "no column 'id'"),
        ({"query": "SELECT NULL::int AS id, title FROM articles WHERE id > $1"}, "null"),
        ({"query": "SELECT 1 AS id, title FROM articles WHERE id > $1", "rows": 2}, "same"),
        ({"cursor": {"column": "id", "start": "now"}}, "not a valid int8"),
        ({"query": "WITH gone AS (DELETE FROM articles WHERE id > $1 RETURNING *) SELECT * FROM gone"}, "read-only"),
        ({"query": "SELECT 1 AS id, nextval('events_seq') WHERE 1 > $1"}, "read-only"),
        ({"query": "SELECT id FROM articles WHERE id > $1; DROP TABLE articles"}, "multiple commands"),
    ],
)
async def test_a_query_that_cannot_be_meant_is_told_and_changes_nothing(
    pulls: Pulls, change: dict[str, Any], words: str
) -> None:
    await write(pulls, 1, 3)
    await pulls.add("db", "db", **{**SOURCE, **change})

    async with replica(pulls) as one:
        await one.puller.round()

    [event] = await pulls.events("ingress_config_error")
    assert words in event["message"]
    assert await pulls.sql("SELECT count(*) FROM articles") == 3
    assert await pulls.refs() == []


async def test_without_a_cursor_receipts_keep_posts_apart_and_a_full_cap_is_told(pulls: Pulls) -> None:
    await write(pulls, 1, 3)
    query = "SELECT id, title, body FROM articles ORDER BY id"
    await pulls.add("db", "db", **{**SOURCE, "query": query, "cursor": None})

    async with replica(pulls) as one:
        await one.puller.round()
        await pulls.again(one)
        fine = await pulls.error("db")
        await pulls.sql("UPDATE pull_sources SET config_json = config_json || '{\"rows\": 2}'")
        await pulls.again(one)

    assert (fine, await pulls.error("db")) == (None, ("config_invalid", 1))
    assert len(await pulls.texts()) == 3


async def test_a_database_that_cannot_be_reached_fails_without_telling_its_address(pulls: Pulls) -> None:
    await pulls.add("db", "db", **SOURCE)

    async with pulls.replica(environment={"DSN": "postgresql://user:s3cret@127.0.0.1:1/none"}) as one:
        await one.puller.round()

    assert await pulls.error("db") == ("connect", 1)
    assert "s3cret" not in await pulls.sql("SELECT last_error::text FROM pull_sources")


async def test_a_query_that_takes_too_long_is_ended_by_its_server(pulls: Pulls) -> None:
    await write(pulls, 1, 1)
    await pulls.add("db", "db", **{**SOURCE, "query": "SELECT id, title, pg_sleep(60) FROM articles WHERE id > $1"})

    async with replica(pulls, budget=Budget(within=timedelta(milliseconds=200))) as one:
        await one.puller.round()

    assert await pulls.error("db") == ("QueryCanceledError", 1)


async def big(pulls: Pulls, rows: int, size: int) -> None:
    await pulls.sql(
        "INSERT INTO articles SELECT n, 'Title ' || n, repeat('word ', $2::int / 5) FROM generate_series(1, $1::int) n",
        *(rows, size),
    )


UNBOUNDED: dict[str, Any] = {**SOURCE, "query": "SELECT id, title, body FROM articles ORDER BY id", "cursor": None}


async def test_a_hundred_megabytes_are_refused_at_the_cap_while_others_go_on(pulls: Pulls) -> None:
    await big(pulls, 100, 1_000_000)
    await pulls.add("big", "db", **UNBOUNDED)
    await pulls.add("small", "db", **{**UNBOUNDED, "query": "SELECT 7 AS id, 'Title' AS title"})

    async with replica(pulls, budget=Budget(size=4_000_000)) as one:
        tracemalloc.start()
        try:
            await one.puller.round()
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()

    assert (await pulls.error("big"), await pulls.error("small")) == (("too_large", 1), None)
    assert await pulls.refs() == ["7"]
    assert peak < 30_000_000


async def test_with_a_cursor_what_is_too_much_for_one_pull_is_read_by_the_next(pulls: Pulls) -> None:
    await big(pulls, 10, 100_000)
    await pulls.add("db", "db", **SOURCE)

    async with replica(pulls, budget=Budget(size=350_000)) as one:
        await one.puller.round()
        first = await pulls.refs()
        await _until_done(pulls, one)

    assert 0 < len(first) < 10
    assert len(await pulls.refs()) == 10
    assert await pulls.cursor() == {"last_seen": 10}


async def test_a_row_that_no_pull_can_take_is_told(pulls: Pulls) -> None:
    await big(pulls, 1, 1_000_000)
    await pulls.add("db", "db", **SOURCE)

    async with replica(pulls, budget=Budget(size=500_000)) as one:
        await one.puller.round()

    assert (await pulls.error("db"), await pulls.refs()) == (("too_large", 1), [])


async def test_what_comes_before_a_row_that_no_pull_can_take_is_read(pulls: Pulls) -> None:
    await write(pulls, 1, 3)
    await pulls.sql("INSERT INTO articles VALUES (4, 'Title 4', repeat('word ', 200000))")
    await pulls.add("db", "db", **SOURCE)

    async with replica(pulls, budget=Budget(size=500_000)) as one:
        await _until_done(pulls, one)
        await one.puller.round()

    assert (await pulls.error("db"), await pulls.refs()) == (("too_large", 1), ["1", "2", "3"])


MONSTERS = {
    "text": "SELECT 1 AS id, 'a' AS title, repeat('x', 100000000) AS body",
    "list": "SELECT 1 AS id, 'a' AS title, array_fill(1000, '{3000000}') AS body;",
    "bytes": "SELECT 1 AS id, 'a' AS title, decode(repeat('ab', 50000000), 'hex') AS body -- all of it",
}


BUDGET = timedelta(milliseconds=50)


async def longest_hold(one: Replica) -> timedelta:
    """Of the event loop, during one round."""
    probe = Probe()
    gc.collect()
    gc.disable()  # a collection goes through all that earlier tests left
    try:
        probing = asyncio.create_task(probe.run())
        await one.puller.round()
        probing.cancel()
    finally:
        gc.enable()
    return probe.longest()


@pytest.mark.parametrize("monster", MONSTERS)
async def test_a_monstrous_row_never_reaches_the_loop(pulls: Pulls, monster: str) -> None:
    await pulls.add("db", "db", **{**UNBOUNDED, "query": MONSTERS[monster]})

    async with replica(pulls) as one:
        held = await longest_hold(one)

    assert await pulls.error("db") == ("too_large", 1)
    assert held < BUDGET


DIGITS = "array_fill(1, '{5000000}')"
JUST_UNDER = {
    "digits": {"query": f"SELECT 1 AS id, 'a' AS title, {DIGITS} AS body"},
    "fractions": {"query": "SELECT 1 AS id, 'a' AS title, array_fill(0.5, '{2500000}') AS body"},
    "lists of digits": {"query": "SELECT 1 AS id, 'a' AS title, array_fill(1, '{100,50000}') AS body"},
    "times": {"query": "SELECT 1 AS id, 'a' AS title, array_fill('2026-01-01'::timestamptz, '{350000}') AS body"},
    "JSON": {"query": f"SELECT 1 AS id, 'a' AS title, to_json({DIGITS}) AS body"},
    "letters": {"query": "SELECT 1 AS id, 'a' AS title, repeat('x', 10000000) AS body"},
    "umlauts": {"query": "SELECT 1 AS id, 'a' AS title, repeat('ö', 5000000) AS body"},
    "tags": {
        "query": "SELECT 1 AS id, 'a' AS title, array_fill('a'::text, '{250000}') AS tags",
        "fields": {"id": "id", "title": "title", "tags": "tags"},
        "item_tags": True,
    },
    "media": {
        "query": "SELECT 1 AS id, 'a' AS title, "
        "(SELECT array_agg('https://a.example/' || n || '.png') FROM generate_series(1, 250000) AS n) AS media",
        "fields": {"id": "id", "title": "title", "media": "media"},
    },
}


@pytest.mark.parametrize("row", JUST_UNDER)
async def test_a_row_just_under_the_limit_does_not_hold_the_loop(pulls: Pulls, row: str) -> None:
    await pulls.add("db", "db", **{**UNBOUNDED, **JUST_UNDER[row]})

    async with replica(pulls, reader=DocumentReader(1, cpu=timedelta(seconds=20))) as one:
        held = await longest_hold(one)

    assert (await pulls.error("db"), await pulls.refs()) == (None, ["1"])
    assert held < BUDGET


async def test_numbers_keep_their_digits_and_json_its_structure(pulls: Pulls) -> None:
    query = (
        "SELECT 12345678901234567890123::numeric AS id, 1.50 AS title, true AS body, "
        """'{"of": {"words": ["a < b"]}}'::jsonb AS deep"""
    )
    fields = {"id": "id", "title": "title", "text": "deep.of.words.0"}
    await pulls.add("db", "db", **{**UNBOUNDED, "query": query, "fields": fields})

    async with replica(pulls) as one:
        await one.puller.round()

    assert await pulls.refs() == ["12345678901234567890123"]
    assert (await pulls.texts())[0] == "<b>1.50</b>\n\na &lt; b"


async def test_a_row_that_cannot_be_read_is_told_and_the_cursor_goes_past_it(pulls: Pulls) -> None:
    query = (
        "SELECT id, 'Title ' || id AS title, CASE id WHEN 3 THEN (repeat('[', 3000) || repeat(']', 3000))::json END "
        "AS body FROM generate_series(1, 3) AS id WHERE id > $1 ORDER BY id"
    )
    await pulls.add("db", "db", **{**SOURCE, "query": query})

    async with replica(pulls) as one:
        await one.puller.round()

    [event] = await pulls.events("ingress_payload_rejected")
    assert (event["code"], len(await pulls.refs()), await pulls.error("db")) == ("unreadable", 3, None)
    assert await pulls.cursor() == {"last_seen": 3}


async def test_a_cursor_value_that_is_too_long_is_told(pulls: Pulls) -> None:
    query = (
        "SELECT name, name AS title FROM (VALUES ('a'), (repeat('b', 5000))) AS of (name) WHERE name > $1 ORDER BY 1"
    )
    await pulls.add("db", "db", **{**NAMED, "query": query})

    async with replica(pulls) as one:
        await one.puller.round()

    [event] = await pulls.events("ingress_config_error")
    assert "longer than 4096" in event["message"]
    assert await pulls.refs() == []


LEAK = "https://ann:hush@host.example/?token=hush +79001234567 bob@people.example " + "word " * 100


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT '{LEAK}'::int AS id, 'a' AS title",
        f"SELECT 1 AS id, 'a' AS title WHERE pg_catalog.query_to_xml('SELECT 1/0 AS \"{LEAK[:60]}\"', true, true, '') "
        "IS NOT NULL",
        f"""SELECT '{{"a": {LEAK}}}'::json AS id, 'a' AS title""",
        f"SELECT pg_catalog.set_config('{LEAK}', '', true) AS id, 'a' AS title",
        f"SELECT to_date('{LEAK}', 'YYYY') AS id, 'a' AS title",
    ],
)
async def test_at_most_eighty_characters_of_a_database_error_are_told_and_redacted(pulls: Pulls, query: str) -> None:
    """The text of such an error quotes a row."""
    await pulls.add("db", "db", **{**UNBOUNDED, "query": query})

    async with replica(pulls) as one:
        await one.puller.round()

    message = await pulls.sql("SELECT last_error ->> 'message' FROM pull_sources")
    [event] = await pulls.events("ingress_config_error") + await pulls.events("pull_failed")
    for told in (message, event["message"]):
        assert len(told.partition(": ")[2]) <= 80
        assert not [secret for secret in ("hush", "79001234567", "bob@") if secret in told]


async def test_a_cursor_that_is_no_value_of_its_column_is_quoted_like_any_foreign_text(pulls: Pulls) -> None:
    """It was read from a row by an earlier pull."""
    await pulls.add("db", "db", **{**SOURCE, "cursor": {"column": "id", "start": LEAK}})

    async with replica(pulls) as one:
        await one.puller.round()

    [event] = await pulls.events("ingress_config_error")
    assert len(event["message"]) < 140
    assert not [secret for secret in ("hush", "79001234567", "bob@") if secret in event["message"]]


async def test_a_row_that_says_more_than_a_post_may_is_told_and_passed_over(pulls: Pulls) -> None:
    await big(pulls, 2, 300_000)
    await write(pulls, 3, 3)
    await pulls.add("db", "db", **SOURCE)

    async with replica(pulls) as one:
        await one.puller.round()

    told = [(event["source_ref"], event["code"]) for event in await pulls.events("ingress_payload_rejected")]
    assert sorted(told) == [("1", "too_large"), ("2", "too_large")]
    assert (await pulls.refs(), len(await pulls.texts())) == (["1", "2", "3"], 1)


@pytest.mark.parametrize("kind", ["timestamptz", "timestamp", "date", "float8", "numeric"])
async def test_a_cursor_that_is_infinite_somewhere_is_told_by_its_column(pulls: Pulls, kind: str) -> None:
    await write(pulls, 1, 2)
    finite = "'2026-01-01'" if kind in ("timestamptz", "timestamp", "date") else "1"
    query = (
        f"SELECT id, title, CASE id WHEN 1 THEN {finite}::{kind} ELSE 'infinity'::{kind} END AS ends "
        f"FROM articles WHERE $1::{kind} IS NOT NULL ORDER BY ends"
    )
    start = finite.strip("'")
    await pulls.add("db", "db", **{**SOURCE, "query": query, "cursor": {"column": "ends", "start": start}})

    async with replica(pulls) as one:
        await one.puller.round()

    [event] = await pulls.events("ingress_config_error")
    assert "'ends' must not be infinite" in event["message"]
    assert (await pulls.error("db"), await pulls.refs()) == (("config_invalid", 1), [])


async def named(pulls: Pulls, *names: str) -> None:
    await pulls.sql("CREATE TABLE names (name text)")
    await pulls.sql("INSERT INTO names SELECT unnest($1::text[])", list(names))


NAMED = {**SOURCE, "fields": {"id": "name", "title": "name"}, "cursor": {"column": "name", "start": ""}}


@pytest.mark.parametrize("rows", [1, 2, 1000])
async def test_a_text_may_be_in_another_order_than_that_of_its_code_points(pulls: Pulls, rows: int) -> None:
    """Here as in most collations the case of a letter comes last; not every server has one of those."""
    await named(pulls, "a", "B", "c", "D", "e")
    query = "SELECT name FROM names WHERE lower(name) > lower($1) ORDER BY lower(name)"
    await pulls.add("db", "db", **{**NAMED, "query": query, "rows": rows})

    async with replica(pulls) as one:
        await _until_done(pulls, one)

    assert await pulls.error("db") is None
    assert await pulls.texts() == [f"<b>{name}</b>" for name in ("a", "B", "c", "D", "e")]
    assert await pulls.cursor() == {"last_seen": "e"}


@pytest.mark.parametrize("rows", [2, 1000])
async def test_a_text_in_another_order_than_the_query_compares_by_is_told(pulls: Pulls, rows: int) -> None:
    await named(pulls, "a", "B", "c")
    query = "SELECT name FROM names WHERE lower(name) > lower($1) ORDER BY lower(name) DESC"
    await pulls.add("db", "db", **{**NAMED, "query": query, "rows": rows})

    async with replica(pulls) as one:
        await one.puller.round()

    [event] = await pulls.events("ingress_config_error")
    assert "order" in event["message"]
    assert await pulls.refs() == []


async def test_a_servers_name_is_looked_up_with_those_of_strangers_before_the_driver_does(pulls: Pulls) -> None:
    """The server is there, but a name server of strangers would not say so."""
    asked: list[str] = []

    def unknown(host: str) -> Sequence[str]:
        asked.append(host)
        raise socket.gaierror("no such name")

    await pulls.add("db", "db", **SOURCE)

    async with replica(pulls, names=Names(unknown)) as one:
        await one.puller.round()

    assert (asked, await pulls.error("db")) == ([urlsplit(pulls.database.url).hostname], ("connect", 1))
