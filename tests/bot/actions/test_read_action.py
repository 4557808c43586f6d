"""What a start and an update may contain."""

import json
from typing import Any
from uuid import UUID

import pytest
from autopost_bot.actions import display_text
from autopost_bot.actions.display_text import LONGEST, clean_display_text
from autopost_bot.actions.read_action import LONGEST_BODY, read_start, read_update
from autopost_contracts.ids import WorkspaceId
from autopost_runtime.http.problem import HttpProblem
from harness.growth import assert_linear
from harness.hostile_texts import HTML, PLAIN, Text

WORKSPACE = WorkspaceId(UUID("5f000000-0000-4000-8000-000000000002"))
START = {"workspaceId": str(WORKSPACE), "chatId": "7", "actionId": "a", "actionType": "summarize"}
UPDATE = {"workspaceId": str(WORKSPACE), "chatId": "7", "actionId": "a", "status": "done"}
ABSENT = object()


def body(fields: dict[str, Any]) -> bytes:
    return json.dumps({name: value for name, value in fields.items() if value is not ABSENT}).encode()


@pytest.mark.parametrize(
    ("field", "value", "status"),
    [
        *((name, ABSENT, 422) for name in ("workspaceId", "chatId", "actionId", "actionType")),
        *((name, 7, 422) for name in ("workspaceId", "chatId", "actionId", "actionType", "displayText", "payload")),
        *((name, "", 422) for name in ("chatId", "actionId", "actionType")),
        ("workspaceId", "0de00000-0000-4000-8000-000000000001", 403),
        ("workspaceId", "garbage", 403),
        ("chatId", "x" * 201, 422),
        ("actionId", "x" * 201, 422),
        ("actionId", "a\nb", 422),
        ("actionType", "x" * 65, 422),
        ("payload", [1], 422),
        ("payload", {"a": "x" * 16_384}, 422),
        ("payload", {"a": [1e308] * 60}, 422),  # the database writes all digits
        ("payload", {"a": [[{"b": -1e-300}]] * 60}, 422),
    ],
)
def test_a_wrong_field_is_refused_by_its_name(field: str, value: object, status: int) -> None:
    with pytest.raises(HttpProblem) as refused:
        read_start(body({**START, field: value}), WORKSPACE)

    assert (refused.value.status, refused.value.field) == (status, field)


@pytest.mark.parametrize("status", [ABSENT, "processing", "finished", None, 1])
def test_an_action_ends_as_done_or_error_only(status: object) -> None:
    with pytest.raises(HttpProblem) as refused:
        read_update(body({**UPDATE, "status": status}), WORKSPACE)

    assert (refused.value.status, refused.value.field) == (422, "status")


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"[]",
        b"{",
        b'{"a": NaN}',
        b'{"a": 1, "a": 2}',
        b'{"a": "\\u0000"}',
        b'{"a": "\\ud800"}',
        b"\xff",
        b"[" * 99,
    ],
)
def test_what_is_no_strict_json_object_is_malformed(raw: bytes) -> None:
    with pytest.raises(HttpProblem) as refused:
        read_start(raw, WORKSPACE)

    assert refused.value.status == 400


def test_unknown_fields_and_types_are_for_the_future_and_pass() -> None:
    read = read_start(body({**START, "actionType": "translate", "priority": 7}), WORKSPACE)

    assert read == {"chat_id": "7", "action_id": "a", "action_type": "translate"}


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ({}, {}),
        ({"displayText": None, "payload": None}, {"display_text": None, "payload": None}),
        ({"displayText": " a "}, {"display_text": "a"}),
        ({"displayText": ""}, {}),
        ({"displayText": "<b></b> \u200e"}, {}),
        ({"payload": {}}, {"payload": {}}),
    ],
)
def test_absent_is_unchanged_null_is_cleared_and_empty_counts_as_absent(
    given: dict[str, Any], read: dict[str, Any]
) -> None:
    fields = read_update(body({**UPDATE, **given}), WORKSPACE)

    assert {name: value for name, value in fields.items() if name in ("display_text", "payload")} == read


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("plain", "plain"),
        ("a < b", "a < b"),
        ("1 <3 you", "1 <3 you"),
        ("&lt;b&gt;", "<b>"),
        ("&amp;lt;b&amp;gt;", "&lt;b&gt;"),
        ("<b>Готовим</b> <i>отчёт</i>", "Готовим отчёт"),
        ("a<br>b<p>c", "a b c"),
        ("a<script>alert(1)</script>b", "ab"),
        ("a<style>b{}</style>c", "ac"),
        ("<img src=x onerror=alert(1)>a", "a"),
        ("<!-- a -->b", "b"),
        ("  a \t\n\u00a0 b  ", "a b"),
        ("a <![<b", "a <![<b"),
        ("a <b", "a <b"),
        ('a <img alt="b > c">d', "a d"),
        ("a <!-- <b> -->c", "a c"),
        ("a <!-- b", "a"),
        ("a<script>b", "a"),
        ("a<SCRIPT src=x>b</Script >c", "ac"),
        ("a <? b ?> c", "a c"),
        ("&l<b>t;", "&lt;"),
        ("a\x07b\u202ec\u2066d\u200e", "abcd"),
        ("👨‍👩‍👧", "👨‍👩‍👧"),
        (" \u200e\n", ""),
    ],
)
def test_the_shown_text_is_plain(given: str, shown: str) -> None:
    assert clean_display_text(given) == shown


MARKUP = {
    unit: (lambda size, unit=unit: unit * (size // len(unit)))
    for unit in ("<a ", '<a b="', "<a a=", "<!--", "<![<", "<!a", "&#", "<script>", "<script", "-", """<a '"<b "'""")
}


@pytest.mark.parametrize("make", (MARKUP | HTML | PLAIN).values(), ids=(MARKUP | HTML | PLAIN).keys())
def test_a_text_twice_as_long_takes_about_twice_the_time(make: Text, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if all of it were read."""
    monkeypatch.setattr(display_text, "READ", LONGEST_BODY)

    assert_linear(lambda text: clean_display_text("<script" + text), make, LONGEST_BODY)
    assert_linear(clean_display_text, make, LONGEST_BODY)


BODIES: dict[str, Text] = {
    "keys": lambda size: "{" + ",".join(f'"k{number}":0' for number in range(size // 10)) + "}",
    "open lists": lambda size: "[" * size,
    "numbers": lambda size: '{"payload": {"a": [' + ",".join(["1e9"] * (size // 4)) + "]}}",
    "objects": lambda size: '{"payload": {"a": [' + ",".join(['{"a":0}'] * (size // 8)) + "]}}",
    "half surrogates": lambda size: '{"a": "' + "\\ud800" * (size // 6) + '"}',
}


@pytest.mark.parametrize("make", BODIES.values(), ids=BODIES)
def test_a_body_twice_as_long_takes_about_twice_the_time(make: Text) -> None:
    assert_linear(lambda size: read_start(size, WORKSPACE), lambda size: make(size).encode(), LONGEST_BODY)


def test_a_long_text_ends_at_a_whole_character() -> None:
    family = "👨‍👩‍👧"  # five code points

    assert clean_display_text("x" * 301) == "x" * 300
    assert clean_display_text("x" * 298 + family) == "x" * 298
    assert len(clean_display_text("a" + "\u0301" * 500)) == LONGEST
    assert len(clean_display_text("<a" * 500_000)) <= LONGEST
