"""JSON that two readers could take differently is refused, and the place is named."""

import json
from typing import Any

import pytest
from autopost_ingest.request.post_request import read_post
from autopost_runtime.http.strict_json import MAX_DEPTH, MAX_KEYS, MAX_VALUES
from autopost_runtime.http.web import HttpProblem
from hypothesis import given
from hypothesis import strategies as st


def refused(body: bytes) -> tuple[str | None, str]:
    with pytest.raises(HttpProblem) as found:
        read_post(body)
    assert found.value.status == 400
    json.dumps([found.value.field, found.value.detail]).encode()  # it can be told
    return found.value.field, found.value.detail


@pytest.mark.parametrize(
    ("body", "field", "words"),
    [
        (rb'{"text": "a\u0000b"}', "text", "NUL"),
        (rb'{"text": "a", "meta": {"x": [1, "\u0000"]}}', "meta.x[1]", "NUL"),
        (rb'{"text": "a", "meta": {"x\u0000": 1}}', "meta.x�", "NUL"),
        (rb'{"text": "\ud800"}', "text", "surrogate"),
        (rb'{"text": "\udc00\ud800"}', "text", "surrogate"),
        (rb'{"text": "a", "tags": ["ok", "\uD83D"]}', "tags[1]", "surrogate"),
        (rb'{"text": "a", "meta": {"\udfff": 1}}', "meta.�", "surrogate"),
        (b'{"text": "a", "text": "b"}', "text", "duplicate"),
        (rb'{"text": "a", "t\u0065xt": "b"}', "text", "duplicate"),
        (b'{"text": "a", "meta": {"a": [{"b": 1, "b": 1}]}}', "meta.a[0].b", "duplicate"),
        (b'{"text": "a", "meta": {"n": NaN}}', "meta.n", "NaN"),
        (b'{"text": "a", "meta": {"n": [Infinity]}}', "meta.n[0]", "Infinity"),
        (b'{"text": "a", "meta": {"n": -Infinity}}', "meta.n", "-Infinity"),
        (b'{"text": "a", "meta": {"n": 1e999}}', "meta.n", "out of range"),
        (b'{"text": "a", "meta": {"n": [' + b"1e308," * 400 + b"0]}}", None, "100000 digits without their exponents"),
        (b'{"text": "a", "meta": {"n": [' + b"1e-308," * 400 + b"0]}}", None, "100000 digits without their exponents"),
        (b'{"text": "a", "meta": {"n": 12345678901234567890}}', "meta.n", "digits"),
        (b'{"text": "a", "meta": {"n": -' + b"9" * 100_000 + b"}}", "meta.n", "digits"),
        (b'{"text": "a", "meta": ' + b'{"a":' * 33 + b"1" + b"}" * 33 + b"}", "meta" + ".a" * 31, "deeper"),
        (b'{"text": "a", "meta": {"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}}", None, "deeper"),
        (b"[" * 100_000, None, "deeper"),
        (b'{"text": "a", "meta": {%s}}' % b", ".join(b'"%d": 1' % n for n in range(MAX_KEYS)), None, "keys"),
        (b'{"text": "a", "meta": {"a": [%s]}}' % b",".join([b'""'] * MAX_VALUES), None, "values"),
        (b'{"text": "a", "meta": {"a": 1, "a": [%s]}}' % b",".join([b"0"] * MAX_VALUES), "meta.a", "duplicate"),
        (b'\xef\xbb\xbf{"text": "a"}', None, "byte order mark"),
        (b'{"text": "a"} {"text": "b"}', None, "line 1, column 15"),
        (b'{"text": "a"}\n\n]', None, "line 3, column 1"),
        (b'{"text": "a\xff"}', None, "byte 11"),
        (b'{"text": "\xed\xa0\x80"}', None, "UTF-8"),
        (b'{"text": "\xc0\x80"}', None, "UTF-8"),
        (b'{"text": "a\x00b"}', None, "column"),
        (b'{"text": "a\nb"}', None, "column"),
        ('{"text": "a"}'.encode("utf-16"), None, "UTF-8"),
        ('{"text": "a"}'.encode("utf-16-le"), None, "column"),
        (b"{'text': 'a'}", None, "column 2"),
        (b'{"text": "a",}', None, "column"),
        (b'{"text": 01}', None, "column"),
        (b'// a comment\n{"text": "a"}', None, "column 1"),
        (b"", None, "column 1"),
    ],
)
def test_a_trap_is_refused_where_it_stands(body: bytes, field: str | None, words: str) -> None:
    where, detail = refused(body)

    assert where == field
    assert words in detail


@pytest.mark.parametrize(
    "body",
    [
        rb'{"text": "\ud83d\ude00"}',
        rb'{"text": "\\u0000 and \\ud800 are only spelled out"}',
        b'{"text": "a", "meta": {"n": 999999999999999999, "f": 1e308, "z": -0.0}}',
        b'{"text": "a", "meta": ' + b'{"a":' * (MAX_DEPTH - 1) + b"1" + b"}" * (MAX_DEPTH - 1) + b"}",
        b' \r\n\t{"text": "a", "meta": {"a": {"x": 1}, "b": {"x": 1}}} \n',
    ],
)
def test_what_only_looks_like_a_trap_is_read(body: bytes) -> None:
    assert read_post(body).text


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b'{"text": 5}', "text"),
        (b'{"txt": "a"}', "txt"),
        (b'{"text": "a", "routing": {"to": "x"}}', "routing.to"),
        (b'{"text": "a", "buttons": [{"text": "", "url": "https://a.example"}]}', "buttons[0].text"),
        (b'{"text": "a", "%s": 1}' % (b"x" * 5000), "x" * 79 + "…"),
        (b'{"text": "a", "meta": {"%s": NaN}}' % (b"x" * 5000), "meta." + "x" * 79 + "…"),
    ],
)
def test_a_wrong_field_is_named_and_never_at_length(body: bytes, field: str) -> None:
    where, detail = refused(body)

    assert where == field
    assert 0 < len(detail) < 400


HUSH = "https://ann:hush@example.com/?token=hush&call=+79001234567&mail=bob@example.com"


@pytest.mark.parametrize(
    "body",
    [
        {"text": "a", HUSH: 1},
        {"text": "a", "parse_mode": HUSH},
        {"text": "a", "media": [{"type": HUSH, "url": "https://a.example/a.png"}]},
        {"text": "a", "meta": {HUSH: 10**30}},
        {"text": "a", "routing": {HUSH: 1}},
        {"text": "a", "scheduled_for": HUSH},
        {"text": "a", "parse_mode": HUSH * 1000},
    ],
)
def test_a_refusal_shows_no_secret_and_nobody_and_little_of_the_body(body: dict[str, Any]) -> None:
    where, detail = refused(json.dumps(body).encode())

    for secret in ("hush", "79001234567", "bob@example.com"):
        assert secret not in f"{where} {detail}"
    assert len(detail) < 200


@pytest.mark.parametrize(
    ("body", "field", "detail"),
    [
        ({"tag": []}, "tag", "unknown field; did you mean `tags`?"),
        ({"media": [{"type": "image", "blobref": "a"}]}, "media[0].blobref", "did you mean `blob_ref`?"),
        ({"buttons": [[{"text": "a", "uri": "b"}]]}, "buttons[0][0].uri", "did you mean `url`?"),
        ({"routing": {"channel": []}}, "routing.channel", "did you mean `channels`?"),
        ({"routing": {"zzz": 1}}, "routing.zzz", "known: channel_tags, channels, thread"),
    ],
)
def test_an_unknown_field_names_the_nearest_known_one(body: dict[str, Any], field: str, detail: str) -> None:
    where, said = refused(json.dumps(body).encode())

    assert where == field
    assert said.endswith(detail)


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**17), 10**17)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00")),
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.dictionaries(
            st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00")), inner, max_size=5
        )
    ),
    max_leaves=20,
)


@given(st.dictionaries(st.text("abc", max_size=3), values, max_size=5), st.booleans())
def test_whatever_json_can_say_once_arrives_as_it_was_said(meta: dict[str, Any], escaped: bool) -> None:
    post = read_post(json.dumps({"text": "a", "meta": meta}, ensure_ascii=escaped).encode())

    assert post.meta == meta
