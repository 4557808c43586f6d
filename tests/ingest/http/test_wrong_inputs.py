"""What a new sender gets wrong: each input with its status, its words, and the rows that it leaves."""

import json
from datetime import UTC, datetime, timedelta
from hashlib import md5
from typing import Any, NamedTuple
from uuid import UUID, uuid4

import httpx
import pytest
from ingest.support.ingest_client import DEMO, SHOP, TABLES, IngestClient

DEMO_1 = "-1001000000001"
"""The chat of the channel "Demo Telegram 1"."""
DEMO_5 = str(UUID(md5(b"demo telegram 5", usedforsecurity=False).hexdigest()))
"""The id of the channel "Demo Telegram 5", as the seed makes it."""
NOTHING = (0, 0, 0, 0)
"""Rows in ``TABLES``."""
ONE = (1, 1, 1, 0)
ALL = (1, 40, 1, 0)
SHOWN_NOWHERE = (1, 40, 0, 0)
"""The message and a failed delivery for each channel, but no receipt: the corrected request is accepted."""
JSON_TYPE = {"Content-Type": "application/json"}


def to(*channels: str, **more: Any) -> dict[str, Any]:
    return {"text": uuid4().hex, "routing": {"channels": channels}, **more}


def at(moment: timedelta) -> str:
    return (datetime.now(UTC) + moment).isoformat()


def sent(body: Any) -> Any:
    """With the time that it is scheduled for, counted from now."""
    moment = body.get("scheduled_for") if isinstance(body, dict) else None
    return body | {"scheduled_for": at(moment)} if isinstance(moment, timedelta) else body


class Input(NamedTuple):
    name: str
    body: Any
    status: int
    words: tuple[str, ...] = ()
    """Each is in the answer."""
    rows: tuple[int, ...] = NOTHING
    field: str | None = None
    secret: str = DEMO


MEDIA = {"type": "image", "file_id": "x"}
BLOB = "sha256:" + "1" * 64
INPUTS: tuple[Input, ...] = (
    Input("an unclosed tag", {"text": "<b>a", "parse_mode": "HTML"}, 422, ("<b>", "correct or remove"),
          SHOWN_NOWHERE),
    Input("an unknown tag", {"text": "<marquee>a</marquee>", "parse_mode": "HTML"}, 422, ("marquee",), SHOWN_NOWHERE),
    Input("5,000 characters", {"text": "я" * 5000}, 422, ("5000", "4096", "4000", "overflow"), SHOWN_NOWHERE),
    Input("4,050 characters", {"text": "я" * 4050}, 202, ("channels_failed", "20 of 40", "routing.channels"), ALL),
    Input("a link to ftp", {"text": "a", "links": ["ftp://x"]}, 422, ("http or https",), NOTHING, "links[0]"),
    Input("a link to localhost", {"text": "a", "links": ["http://localhost"]}, 422, ("links[0]",), SHOWN_NOWHERE),
    Input("a mark that is not closed", {"text": "a *b", "parse_mode": "Markdown"}, 202, ("unclosed_mark",), ALL),
    Input("a channel by id", to(DEMO_5), 202, (), ONE),
    Input("a channel by title", to("Demo Telegram 1"), 202, (), ONE),
    Input("a title in other letters", to(" demo telegram 1 "), 202, (), ONE),
    Input("a channel by chat id", to(DEMO_1), 202, (), ONE),
    Input("one channel by two names", to(DEMO_1, "Demo Telegram 1"), 202, (), ONE),
    Input("an unknown channel", to("nobody"), 422, ("'nobody'", "known: ", "more"), NOTHING, "routing.channels[0]"),
    Input("a misspelt title", to("Demo Telegrm 1"), 422, ("did you mean `Demo Telegram 1`",), NOTHING,
          "routing.channels[0]"),
    Input("an unknown id", to(DEMO_1, str(uuid4())), 422, ("unknown channel",), NOTHING, "routing.channels[1]"),
    Input("an empty name", to(""), 400, (), NOTHING, "routing.channels[0]"),
    Input("a title of two channels", to("Twins"), 422, ("2 channels", "by its id", "(telegram)", "(max)"), NOTHING,
          "routing.channels[0]"),
    Input("a tag that no channel has", {"text": "a", "routing": {"channel_tags": ["evn"]}}, 422,
          ("did you mean `even`",), NOTHING, "routing.channel_tags[0]"),
    Input("tags that no filter names", {"text": "a b", "tags": ["nwes"]}, 202, ("unused_tags", "nwes"), ALL),
    Input("a disabled channel", to("Off"), 503, ("no_channel_enabled", "disabled"), NOTHING),
    Input("a disabled channel and another", to("Off", DEMO_1), 202, (), ONE),
    Input("a channel that takes other tags", to("Север: скидки"), 422,
          ("no_channel", "sale, promo", "add one of these"), NOTHING, None, SHOP),
    Input("text for a channel of pictures", to("Север в MAX: фото"), 422, ("accepts only media",), NOTHING, None, SHOP),
    Input("a closed posting window", to("Closed"), 202, ("outside_windows", "opens at"), ONE),
    Input("a time an hour ago", {"text": "a c", "scheduled_for": -timedelta(hours=1)}, 422,
          ("5 minutes in the past", "leave it out"), NOTHING, "scheduled_for"),
    Input("a time a moment ago", {"text": "a d", "scheduled_for": -timedelta(minutes=4)}, 202, (), ALL),
    Input("a time without a zone", {"text": "a", "scheduled_for": "2099-12-01T10:00:00"}, 400, ("timezone",), NOTHING,
          "scheduled_for"),
    Input("a time in words", {"text": "a", "scheduled_for": "tomorrow"}, 400, (), NOTHING, "scheduled_for"),
    Input("a time in 2200", {"text": "a", "scheduled_for": "2200-01-01T00:00:00Z"}, 422, ("2199",), NOTHING,
          "scheduled_for"),
    Input("an empty post", {}, 422, ("must not be empty",), NOTHING, "text"),
    Input("spaces", {"text": "  \n "}, 422, ("must not be empty",), NOTHING, "text"),
    Input("nothing that shows", {"text": "\u200b"}, 422, ("must not be empty",), NOTHING, "text"),
    Input("a button without a URL", {"text": "a", "buttons": [{"text": "b"}]}, 400, ("url",), NOTHING, "buttons[0]"),
    Input("a button without a text", {"text": "a", "buttons": [{"text": "", "url": "https://a.example"}]}, 400, (),
          NOTHING, "buttons[0].text"),
    Input("a word for a button", {"text": "a", "buttons": ["b"]}, 400, ("object",), NOTHING, "buttons[0]"),
    Input("html in small letters", {"text": "a", "parse_mode": "html"}, 400, ("did you mean `HTML`",), NOTHING,
          "parse_mode"),
    Input("an unknown parse mode", {"text": "a", "parse_mode": "rst"}, 400, ("known: HTML, Markdown",), NOTHING,
          "parse_mode"),
    Input("an unknown type of media", {"media": [MEDIA | {"type": "sticker"}]}, 400, ("known: ", "image", "video"),
          NOTHING, "media[0].type"),
    Input("media without a source", {"media": [{"type": "image"}]}, 422, ("exactly one of",), NOTHING, "media[0]"),
    Input("media of two sources", {"media": [MEDIA | {"blob_ref": BLOB}]}, 422, ("exactly one of",), NOTHING,
          "media[0]"),
    Input("media that is not stored", {"media": [{"type": "image", "blob_ref": BLOB}]}, 422, ("no stored media",),
          NOTHING, "media[0].blob_ref"),
    Input("media of Telegram for MAX", {"media": [MEDIA], "routing": {"channels": ["Demo MAX 1"]}}, 422,
          ("cannot be used on max", "Demo MAX 1"), (1, 1, 0, 0)),
    Input("an unknown field", {"txt": "a"}, 400, ("did you mean `text`",), NOTHING, "txt"),
    Input("channels beside routing", {"text": "a", "channels": ["x"]}, 400, ("unknown field",), NOTHING, "channels"),
    Input("an unknown field of routing", {"text": "a", "routing": {"chanels": []}}, 400, ("did you mean `channels`",),
          NOTHING, "routing.chanels"),
    Input("a number for a text", {"text": 5}, 400, ("str | null",), NOTHING, "text"),
    Input("a word for tags", {"text": "a", "tags": "news"}, 400, ("`array`",), NOTHING, "tags"),
    Input("a list", [], 400, ("`object`",)),
    Input("a word", "hello", 400, ("`object`",)),
)  # fmt: skip
RAW: tuple[tuple[str, dict[str, Any], int, str], ...] = (
    ("a form", {"data": {"text": "a"}}, 415, "-H 'Content-Type: application/json'"),
    ("text", {"content": b"a", "headers": {"Content-Type": "text/plain"}}, 415, "-H 'Content-Type: application/json'"),
    ("no JSON", {"content": b"text=a", "headers": JSON_TYPE}, 400, "not valid JSON"),
    ("no body", {"content": b"", "headers": JSON_TYPE}, 400, "JSON"),
    ("a key twice", {"content": b'{"text": "a", "text": "b"}', "headers": JSON_TYPE}, 400, "duplicate key"),
    ("an encoded body", {"content": b"x", "headers": {"Content-Encoding": "gzip"}}, 415, "uncompressed"),
    ("a parameter", {"json": {"text": "a"}, "query": "?dryrun=1"}, 400, "did you mean `dry_run`"),
    ("a wrong secret", {"json": {"text": "a"}, "secret": "wrong"}, 401, "Authorization: Bearer"),
)


@pytest.fixture
async def sender(client: IngestClient) -> IngestClient:
    """With two channels of one title, one that is disabled and one that is closed."""
    await client.sql("UPDATE workspace_endpoints SET ingress_rps = NULL")
    for change in (
        "title = 'Twins' WHERE title IN ('Demo Telegram 2', 'Demo MAX 2')",
        "title = 'Off', enabled = false WHERE title = 'Demo Telegram 3'",
        "title = 'Closed', window_mode = 'windowed', posting_window = '{\"mon\": [[\"00:00\", \"00:01\"]]}' "
        "WHERE title = 'Demo Telegram 4'",
    ):
        await client.sql(f"UPDATE channels SET {change}")
    await client.sql(
        "INSERT INTO channels (workspace_id, platform, target_id, auth_ref, rate_group) SELECT workspace_id, platform, "
        "'one more', auth_ref, rate_group FROM channels WHERE title = 'Off'"
    )
    return client


async def counted(client: IngestClient) -> tuple[int, ...]:
    rows = await client.rows()
    return tuple(rows[table] for table in TABLES)


async def told_events(client: IngestClient) -> int:
    found: int = await client.sql("SELECT count(*) FROM events WHERE action IN ('validation_failed', 'enqueue')")
    return found


def words_of(answer: httpx.Response) -> str:
    """All that it says, as a reader sees it."""
    return json.dumps(answer.json(), ensure_ascii=False)


async def test_each_wrong_input_has_its_status_its_words_and_its_rows(sender: IngestClient) -> None:
    found = {}
    for given in INPUTS:
        before = await counted(sender)
        answer = await sender.post(sent(given.body), secret=given.secret)
        rows = tuple(now - then for now, then in zip(await counted(sender), before, strict=True))
        words = words_of(answer)
        missing = tuple(word for word in given.words if word not in words)
        got = (answer.status_code, answer.json().get("field"), rows, missing)
        if got != (given.status, given.field, given.rows, ()):
            found[given.name] = (got, words[:600])

    assert found == {}


async def test_each_wrong_request_has_its_status_and_its_words(client: IngestClient) -> None:
    for name, options, status, words in RAW:
        answer = await client.post(**options)

        assert (answer.status_code, words in words_of(answer)) == (status, True), (name, answer.text)
    assert await counted(client) == NOTHING


@pytest.mark.parametrize("path", ["/", "/v1/post", "/v1/posts/"])
async def test_an_unknown_path_names_those_that_exist(client: IngestClient, path: str) -> None:
    answer = await client.http.post(f"{client.url}{path}", json={})

    assert answer.status_code == 404
    assert "/v1/posts" in answer.json()["detail"]
    assert "/openapi.json" in answer.json()["detail"]


REFUSED = [given for given in INPUTS if given.status in (422, 503)]


async def test_the_dry_run_says_the_same_words(sender: IngestClient) -> None:
    for given in REFUSED:
        dry = (await sender.try_out(sent(given.body), secret=given.secret)).json()
        posted = (await sender.post(sent(given.body), secret=given.secret)).json()

        if "code" not in posted:  # refused before its channels were looked at, also by a dry run
            assert (dry["status"], dry["field"]) == (422, posted["field"]), given.name
            assert dry["detail"][-40:] == posted["detail"][-40:]  # it may begin with a time
            continue
        assert dry["verdict"] == "refused", given.name
        assert dry["reason"] == posted["detail"]
        assert dry["refusal"] == {name: posted[name] for name in ("status", "code", "detail")}
        assert dry["problems"] == posted["problems"]


async def test_the_warnings_of_a_dry_run_are_those_of_the_post(sender: IngestClient) -> None:
    warned = [given for given in INPUTS if given.status == 202]
    for given in warned:
        dry = (await sender.try_out(sent(given.body))).json()
        posted = (await sender.post(sent(given.body))).json()

        assert dry["warnings"] == posted.get("warnings", []), given.name
    assert len(warned) > 5


async def test_the_same_refused_request_again_writes_no_further_rows(sender: IngestClient) -> None:
    for given in REFUSED:
        await sender.post(sent(given.body), secret=given.secret)
    before, events = await counted(sender), await told_events(sender)

    answers = [await sender.post(sent(given.body), secret=given.secret) for given in REFUSED]

    assert [answer.status_code for answer in answers] == [given.status for given in REFUSED]
    assert await counted(sender) == before
    unrouted = sum(answer.json().get("code") in ("no_channel", "no_channel_enabled") for answer in answers)
    assert await told_events(sender) - events == unrouted  # each request that no channel takes leaves its event


async def test_the_corrected_request_with_the_same_source_ref_is_accepted(sender: IngestClient) -> None:
    for place, given in enumerate(REFUSED):
        await sender.post(sent(given.body) | {"source_ref": str(place)}, secret=given.secret)

    right = [
        await sender.post({"text": f"right {place}", "tags": ["sale"], "source_ref": str(place)}, secret=given.secret)
        for place, given in enumerate(REFUSED)
    ]

    assert {answer.status_code for answer in right} == {202}


async def test_a_late_post_that_was_stored_in_time_is_a_duplicate(sender: IngestClient) -> None:
    body = {"text": "a", "source_ref": "1", "scheduled_for": at(timedelta(minutes=1))}
    first = await sender.post(body)

    again = await sender.post(body | {"scheduled_for": at(-timedelta(hours=1))})

    assert (first.status_code, again.status_code, again.json()["status"]) == (202, 200, "duplicate")


async def test_problems_are_grouped_by_cause_and_name_the_channels(client: IngestClient) -> None:
    answer = (await client.post({"text": "я" * 4050})).json()

    [warning] = answer["warnings"]
    [problem] = warning["problems"]
    assert {name: problem[name] for name in ("code", "field", "message", "channel_count")} == {
        "code": "message_too_long",
        "field": "text",
        "message": "4050 characters, at most 4000 are allowed",
        "channel_count": 20,
    }
    assert {channel["platform"] for channel in problem["channels"]} == {"max"}
    assert problem["channels"][0]["title"].startswith("Demo MAX ")
