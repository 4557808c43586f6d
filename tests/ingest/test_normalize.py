"""One deterministic normaliser: golden vectors pin the hash, properties pin what may not change it."""

import pytest
from autopost_contracts.payload import Button, PostRequest, Routing
from autopost_ingest.normalize import HASH_VERSION, Refused, normalize
from hypothesis import given
from hypothesis import strategies as st

GOLDEN = [
    (
        PostRequest(text="hello"),
        "cbbbdcd27692344de5dbab3abcaba413fb0f45307267de7081401576df1cb176",
    ),
    (
        PostRequest(text="<b>Привет</b>", parse_mode="HTML"),
        "eb6813b817a033e4fafd2c8fb5e17428f8c11d8625bf8f310614338bda5f18aa",
    ),
    (
        PostRequest(text="a", links=("https://Example.org:443/b?y=2&x=1",)),
        "c696f749f01dd3fdd305b19ed531fd6a6b79edc89be4c934eb7db74c82e7e10f",
    ),
    (
        PostRequest(text="a", buttons=(Button("Go", "https://example.org"),)),
        "6e3d00f9322862b131b094ef617f97c0e1655ffa812592731a2216b8c4dbc7ab",
    ),
]


@pytest.mark.parametrize(("request_", "content_hash"), GOLDEN)
def test_the_hash_of_known_posts_never_moves(request_: PostRequest, content_hash: str) -> None:
    assert HASH_VERSION == 1
    assert normalize(request_).content_hash == content_hash


@pytest.mark.parametrize(
    ("given_text", "text"),
    [
        ("  a  b\t c ", "a b c"),
        ("a\r\nb\rc", "a\nb\nc"),
        ("a\n\n\n\n\nb", "a\n\nb"),
        ("a   \n   b", "a\nb"),
        ("e\u0301", "\u00e9"),
        ("\u00a0a\u2003b", "a b"),
    ],
)
def test_text_is_trimmed_collapsed_and_composed(given_text: str, text: str) -> None:
    assert normalize(PostRequest(text=given_text)).content.text == text


@given(st.text(min_size=1).filter(str.strip))
def test_normalising_twice_changes_nothing(text: str) -> None:
    try:
        once = normalize(PostRequest(text=text)).content.text
    except Refused:
        return
    assert normalize(PostRequest(text=once)).content.text == once


def test_what_steers_a_post_is_not_its_content() -> None:
    plain = normalize(PostRequest(text="a"))
    steered = normalize(
        PostRequest(text=" a ", tags=("x",), routing=Routing(channel_tags=("y",)), silent=True, source_ref="r", meta={})
    )

    assert steered.content_hash == plain.content_hash


def test_what_a_post_says_is_its_content() -> None:
    button = Button("Go", "https://example.org/")
    said = [
        PostRequest(text="a"),
        PostRequest(text="b"),
        PostRequest(text="a", parse_mode="HTML"),
        PostRequest(text="a", links=("https://example.org/",)),
        PostRequest(text="a", buttons=(button,)),
        PostRequest(text="a", buttons=(button, button)),
        PostRequest(text="a", buttons=((button, button),)),
    ]

    assert len({normalize(post).content_hash for post in said}) == len(said)


def test_tags_are_lowercase_sorted_and_unique() -> None:
    assert normalize(PostRequest(text="a", tags=(" News ", "news", "AI"))).tags == ("ai", "news")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("https://Example.org:443/a?b=2&a=1", "https://example.org/a?a=1&b=2"),
        ("http://example.org:80", "http://example.org/"),
        ("https://пример.рф/", "https://xn--e1afmkfd.xn--p1ai/"),
    ],
)
def test_the_same_link_written_differently_is_the_same(one: str, other: str) -> None:
    assert normalize(PostRequest(links=(one,))).content_hash == normalize(PostRequest(links=(other,))).content_hash


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        (PostRequest(), "text"),
        (PostRequest(text="  \n "), "text"),
        (PostRequest(text="a", links=("ftp://example.org",)), "links[0]"),
        (PostRequest(text="a", links=("https://ok.example/", "not a url")), "links[1]"),
        (PostRequest(text="a", links=("http://[::1",)), "links[0]"),
        (PostRequest(text="a", buttons=(Button("Go", "javascript:alert(1)"),)), "buttons[0].url"),
    ],
)
def test_nonsense_is_refused_by_the_name_of_its_field(request_: PostRequest, field: str) -> None:
    with pytest.raises(Refused) as refused:
        normalize(request_)

    assert refused.value.field == field
