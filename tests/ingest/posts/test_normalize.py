"""One deterministic normaliser: golden vectors pin the hash, properties pin what may not change it."""

import re
from typing import Any

import pytest
from autopost_contracts.payload import Flags, MediaItem, PostButton, PostRequest, Routing
from autopost_ingest.errors import InvalidPost
from autopost_ingest.posts import normalize as module
from autopost_ingest.posts.normalize import HASH_VERSION, content_hash, normalize
from autopost_ingest.posts.text_limits import has_too_many_marks
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

ONE = "sha256:" + "1" * 64
TWO = "sha256:" + "2" * 64

GO = PostButton("Go", "https://example.org")

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
        PostRequest(
            text="a",
            parse_mode="Markdown",
            media=(
                MediaItem("photo", blob_ref=ONE, caption="b"),
                MediaItem("document", file_id="f"),
                MediaItem("video", attachment_token="t"),
            ),
        ),
        "d28aefb06f2b2cee55f4ed9616cfe1ff68178886f2abd6f1beb00ad685e31280",
    ),
    (
        PostRequest(text="a", buttons=(PostButton("Go", "https://example.org"),)),
        "6e3d00f9322862b131b094ef617f97c0e1655ffa812592731a2216b8c4dbc7ab",
    ),
    (
        PostRequest(text="look:\n```python\nif a:\n    b  =  1\n\n\n\n```\n  so   it is", parse_mode="Markdown"),
        "78f4fdd309246284363121caea7bf341e2f883ed5b4851b609c08625769cb525",
    ),
    (
        PostRequest(text="look:  <pre>a\n    b  =  1\n\n\n\n</pre>\n  so   it is", parse_mode="HTML"),
        "9fb3c30d9290935a39594c46e662378056b914d616b51157f598d4cac3f6595b",
    ),
]


@pytest.mark.parametrize(("request_", "hashed"), GOLDEN)
def test_the_hash_of_known_posts_never_moves(request_: PostRequest, hashed: str) -> None:
    assert HASH_VERSION == 2
    assert normalize(request_).content_hash == hashed


@pytest.mark.parametrize(
    ("given_text", "text"),
    [
        ("  a  b\t c ", "a b c"),
        ("a\r\nb\rc", "a\nb\nc"),
        ("a\u2028b\u2029c\x85d", "a\nb\nc\nd"),
        ("a\n\n\n\n\nb", "a\n\nb"),
        ("a   \n   b", "a\nb"),
        ("e\u0301", "\u00e9"),
        ("\u00a0a\u2003b", "\u00a0a\u2003b"),
        ("10\u00a0000  \u20bd,\t5\u2009%", "10\u00a0000 \u20bd, 5\u2009%"),
        ("a\u00a0\u00a0b \u3000 c", "a\u00a0\u00a0b \u3000 c"),
    ],
)
def test_text_is_trimmed_collapsed_and_composed(given_text: str, text: str) -> None:
    assert normalize(PostRequest(text=given_text)).content.text == text


@pytest.mark.parametrize("parse_mode", [None, "HTML", "Markdown"])
@pytest.mark.parametrize(
    ("given_text", "text"),
    [
        ("- a\n  - b\n    - c", "- a\n  - b\n    - c"),
        ("  - a\n     * b  c \n\t+ d", "- a\n     * b c\n    + d"),
        ("1. a\n   2) b\n \t • c", "1. a\n   2) b\n     • c"),
        ("a\n\n\n\n  - b", "a\n\n  - b"),
        ("a\n  b\n  -c\n  12 d", "a\nb\n-c\n12 d"),
        ("> - a\n>   - b  c\n>\t- d", "> - a\n>   - b c\n>    - d"),
        ("a\n>  b\n> >  c", "a\n> b\n> > c"),
    ],
)
def test_nested_lists_keep_their_indentation(parse_mode: Any, given_text: str, text: str) -> None:
    assert normalize(PostRequest(text=given_text, parse_mode=parse_mode)).content.text == text


@pytest.mark.parametrize("text", ["", " \n", "\u00a0", "\u200b\u2060", "\u2800"])
def test_a_post_that_shows_nothing_is_refused(text: str) -> None:
    with pytest.raises(InvalidPost) as refused:
        normalize(PostRequest(text=text))

    assert refused.value.field == "text"


def test_the_topic_of_a_post_is_a_flag_and_not_content() -> None:
    usual, other = (normalize(PostRequest(text="a", routing=Routing(thread=thread))) for thread in (None, 7))

    assert (usual.flags.thread, other.flags.thread) == (None, 7)
    assert usual.content_hash == other.content_hash


FENCED = "```py\nif a:\n    b  =  1\n\n\n\n    c\n```"
MARKED = "<pre>if a:\n\tb  =  1\n\n\n\n</pre>"


@pytest.mark.parametrize(
    ("parse_mode", "given_text", "text"),
    [
        ("Markdown", f"  see   this:\n{FENCED}\n  and   that ", f"see this:\n{FENCED}\nand that"),
        ("Markdown", f"{FENCED}\n  x   \n  {FENCED}", f"{FENCED}\nx\n{FENCED}"),
        ("Markdown", "a  `b  c`  d  ``e ` f  g``", "a `b  c` d ``e ` f  g``"),
        ("Markdown", r"\`  a  `b  c`", r"\` a `b  c`"),
        ("Markdown", "a  `b\n\nc  `e  f`", "a `b\n\nc `e  f`"),
        ("Markdown", "a ```  never  ended", "a ``` never ended"),
        ("Markdown", MARKED, "<pre>if a:\nb = 1\n\n</pre>"),
        ("HTML", f"<b>a</b>   {MARKED}   b", f"<b>a</b> {MARKED} b"),
        ("HTML", MARKED.upper(), MARKED.upper()),
        (
            "HTML",
            "a  <code>b  c</code>  <pre>  never <code>d  e</code>  f",
            "a <code>b  c</code> <pre> never <code>d  e</code> f",
        ),
        ("HTML", "<pre>  never  ended", "<pre> never ended"),
        (None, FENCED, "```py\nif a:\nb = 1\n\nc\n```"),
    ],
)
def test_in_code_every_space_counts(parse_mode: Any, given_text: str, text: str) -> None:
    request = PostRequest(text=given_text, parse_mode=parse_mode)
    captioned = PostRequest(media=(MediaItem("photo", blob_ref=ONE, caption=given_text),), parse_mode=parse_mode)

    assert normalize(request).content.text == text
    assert normalize(captioned).content.media[0].caption == text


@given(st.text(alphabet="`<pre/> \n\tx", max_size=60), st.sampled_from(["HTML", "Markdown"]))
def test_normalising_code_twice_changes_nothing(text: str, parse_mode: Any) -> None:
    once = normalize(PostRequest(text=f"x{text}", parse_mode=parse_mode)).content.text

    assert normalize(PostRequest(text=once, parse_mode=parse_mode)).content.text == once


@pytest.mark.parametrize("parse_mode", ["HTML", "Markdown"])
def test_code_that_opens_again_and_again_is_read_once(parse_mode: Any) -> None:
    """Looking for the end of each anew would take minutes."""
    opened = "<pre " * 8_000 + "``` ``" * 4_000

    assert normalize(PostRequest(text=opened, parse_mode=parse_mode)).content.text


@given(st.text(min_size=1).filter(str.strip))
def test_normalising_twice_changes_nothing(text: str) -> None:
    try:
        once = normalize(PostRequest(text=text)).content.text
    except InvalidPost:
        return
    assert normalize(PostRequest(text=once)).content.text == once


def test_what_steers_a_post_is_not_its_content() -> None:
    plain = normalize(PostRequest(text="a"))
    steered = normalize(
        PostRequest(
            text=" a ",
            tags=("x",),
            routing=Routing(channel_tags=("y",)),
            silent=True,
            protect=True,
            disable_preview=True,
            source_ref="r",
            meta={},
        )
    )

    assert steered.flags == Flags(disable_preview=True, silent=True, protect=True, tags=("x",))
    assert steered.content_hash == plain.content_hash


def test_what_a_post_says_is_its_content() -> None:
    button = PostButton("Go", "https://example.org/")
    said = [
        PostRequest(text="a"),
        PostRequest(text="b"),
        PostRequest(text="a", parse_mode="HTML"),
        PostRequest(text="a", parse_mode="Markdown"),
        PostRequest(text="a", links=("https://example.org/",)),
        PostRequest(text="a", buttons=(button,)),
        PostRequest(text="a", buttons=(button, button)),
        PostRequest(text="a", buttons=((button, button),)),
    ]

    assert len({normalize(post).content_hash for post in said}) == len(said)


@pytest.mark.parametrize(
    ("given_type", "inside"),
    [
        ("photo", "image"),
        ("image", "image"),
        ("document", "file"),
        ("file", "file"),
        ("video", "video"),
        ("animation", "animation"),
        ("audio", "audio"),
    ],
)
def test_every_kind_of_media_has_one_name_inside(given_type: Any, inside: str) -> None:
    content = normalize(PostRequest(media=(MediaItem(given_type, blob_ref=ONE),))).content

    assert (content.type, [medium.type for medium in content.media]) == ("media", [inside])


@pytest.mark.parametrize("source", ["blob_ref", "file_id", "attachment_token"])
def test_media_is_known_by_the_one_source_that_was_named(source: str) -> None:
    item = MediaItem("image", caption=" a  b\r\n", **{source: f" {ONE} "})

    [medium] = normalize(PostRequest(media=(item,))).content.media

    named = {name: getattr(medium, name) for name in ("blob_ref", "file_id", "attachment_token", "url")}
    assert {name: value for name, value in named.items() if value is not None} == {source: ONE}
    assert medium.caption == "a b"


def test_media_needs_no_text_beside_it() -> None:
    assert normalize(PostRequest(media=(MediaItem("image", file_id="x"),))).content.text == ""


def test_media_is_content_by_what_it_is_how_it_is_shown_and_where_it_stands() -> None:
    one, two = MediaItem("image", blob_ref=ONE), MediaItem("image", blob_ref=TWO)
    said = [
        PostRequest(text="a"),
        PostRequest(media=(one,)),
        PostRequest(text="a", media=(one,)),
        PostRequest(text="a", media=(two,)),
        PostRequest(text="a", media=(one, two)),
        PostRequest(text="a", media=(two, one)),
        PostRequest(text="a", media=(one, one)),
        PostRequest(text="a", media=(MediaItem("file", blob_ref=ONE),)),
        PostRequest(text="a", media=(MediaItem("image", blob_ref=ONE, caption="b"),)),
        PostRequest(text="a", media=(MediaItem("image", file_id=ONE),)),
        PostRequest(text="a", media=(MediaItem("image", attachment_token=ONE),)),
    ]

    assert len({normalize(post).content_hash for post in said}) == len(said)


def test_the_same_media_said_differently_is_the_same() -> None:
    image = MediaItem("image", blob_ref=ONE, caption="a b")
    photo = MediaItem("photo", blob_ref=f" {ONE}", caption=" a  b ")

    assert normalize(PostRequest(media=(image,))).content_hash == normalize(PostRequest(media=(photo,))).content_hash


def test_what_is_found_out_about_media_does_not_move_the_hash() -> None:
    plain = normalize(PostRequest(media=(MediaItem("image", blob_ref=ONE),)))
    [medium] = plain.content.media
    known = replace(medium, content_type="image/png", size=68, width=3, height=2, name="a.png")

    assert content_hash(replace(plain.content, media=(known,))) == plain.content_hash


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
        (PostRequest(text="a", buttons=(PostButton("Go", "javascript:alert(1)"),)), "buttons[0].url"),
        (PostRequest(text="a", buttons=((GO,), (GO, PostButton("Go", "nowhere")))), "buttons[1][1].url"),
        (PostRequest(text="a", buttons=((), GO, PostButton("Go", "nowhere"))), "buttons[2].url"),
        (PostRequest(text="a", media=(MediaItem("image"),)), "media[0]"),
        (
            PostRequest(media=(MediaItem("image", file_id="x"), MediaItem("image", blob_ref=ONE, file_id="x"))),
            "media[1]",
        ),
        (PostRequest(media=(MediaItem("image", blob_ref=ONE, url="https://a.example/x.png"),)), "media[0]"),
        (PostRequest(media=(MediaItem("image", url="ftp://a.example/x.png"),)), "media[0].url"),
        (PostRequest(media=(MediaItem("image", url="https://me:secret@a.example/x.png"),)), "media[0].url"),
        (PostRequest(media=(MediaItem("image", url="https:///x.png"),)), "media[0].url"),
        (PostRequest(media=(MediaItem("image", file_id=" "),)), "media[0].file_id"),
        (PostRequest(media=(MediaItem("image", blob_ref=""),)), "media[0].blob_ref"),
        (PostRequest(media=(MediaItem("image", blob_ref="1" * 64),)), "media[0].blob_ref"),
        (PostRequest(media=(MediaItem("image", blob_ref=ONE + "1"),)), "media[0].blob_ref"),
        (PostRequest(media=(MediaItem("image", blob_ref="sha256:" + "A" * 64),)), "media[0].blob_ref"),
    ],
)
def test_nonsense_is_refused_by_the_name_of_its_field(request_: PostRequest, field: str) -> None:
    with pytest.raises(InvalidPost) as refused:
        normalize(request_)

    assert refused.value.field == field


@pytest.mark.parametrize(
    "url",
    [
        "https://exa mple.com/",
        "https://exa\u3000mple.com/",
        "https://<b>/",
        "https://%zz/",
        "https://ex%41mple.com/",
        "https://.",
        "https://a..b/",
        "https://.a/",
        'https://a"b/',
        "https://a{b}/",
        "https://a\tb/x",
        "https://a.example/x\ny",
        "https://a.example/\x00",
        "https://a.example/x\x7f",
        "https://a.example/x\x85y",
        f"https://{'a' * 64}.example/",
        "http://[v1.a:b]/",
        "http://[::1%25<b>]/",
    ],
)
def test_a_url_that_leads_nowhere_is_refused(url: str) -> None:
    for request, field in (
        (PostRequest(text="a", links=(url,)), "links[0]"),
        (PostRequest(text="a", buttons=(PostButton("Go", url),)), "buttons[0].url"),
        (PostRequest(media=(MediaItem("image", url=url),)), "media[0].url"),
    ):
        with pytest.raises(InvalidPost) as refused:
            normalize(request)
        assert (refused.value.field, refused.value.reason) == (field, "must be an absolute http or https URL")


@pytest.mark.parametrize(
    ("url", "kept"),
    [
        (" https://Example.org \n", "https://example.org/"),
        (
            "https://пример.рф/путь?q=я#да",
            "https://xn--e1afmkfd.xn--p1ai/%D0%BF%D1%83%D1%82%D1%8C?q=%D1%8F#%D0%B4%D0%B0",
        ),
        ("https://☃.net/", "https://xn--n3h.net/"),
        ("https://münchen。de/", "https://xn--mnchen-3ya.de/"),
        ("https://a.example/\u00a0\u200b<b>", "https://a.example/%C2%A0%E2%80%8B%3Cb%3E"),
        ("https://a.example/x y?q=x y", "https://a.example/x%20y?q=x+y"),
        ("https://a_b.-c.example.:8443/", "https://a_b.-c.example.:8443/"),
        ("http://[2001:DB8::1]:8080/a", "http://[2001:db8::1]:8080/a"),
        ("http://[::ffff:1.2.3.4]/", "http://[::ffff:102:304]/"),
        ("http://[fe80::1%25eth0]/", "http://[fe80::1%25eth0]/"),
        ("http://127.0.0.1/", "http://127.0.0.1/"),
        ("http://localhost:8000/", "http://localhost:8000/"),
        ("https://me:p%40ss@a.example/", "https://me:p%40ss@a.example/"),
        (f"https://{'a' * 63}.example/", f"https://{'a' * 63}.example/"),
    ],
)
def test_a_url_that_leads_somewhere_is_kept_in_its_one_form(url: str, kept: str) -> None:
    assert normalize(PostRequest(links=(url,))).content.links == (kept,)


SPACED = st.text(st.sampled_from("ab\u00e9e\u0301 \n\r\t\u00a0\u2003\u200b\u2028\x1c\x85<pre>/`"), max_size=40)


@given(text=SPACED | st.text(), parse_mode=st.sampled_from([None, "HTML", "Markdown"]))
def test_a_text_that_is_seen_to_be_tidy_is_what_collapsing_would_leave_of_it(text, parse_mode):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_is_tidy", lambda _: False)
        collapsed = module._text(text, parse_mode)

    assert module._text(text, parse_mode) == collapsed


MARKED_TOO_OFTEN = "a" + "\u0301" * 31
TOO_LONG = "x" * 65_537
REFUSED_TEXTS: list[tuple[dict[str, Any], str]] = [
    ({"text": TOO_LONG}, "text"),
    ({"text": MARKED_TOO_OFTEN}, "text"),
    ({"text": "b" * 17 + MARKED_TOO_OFTEN + "b"}, "text"),
    ({"text": "a" + "\u0344\u0e38\U0001d165" * 11}, "text"),
    ({"text": "a", "media": (MediaItem("photo", blob_ref=ONE, caption=TOO_LONG),)}, "media[0].caption"),
    ({"media": (MediaItem("photo", blob_ref=ONE, caption=MARKED_TOO_OFTEN),)}, "media[0].caption"),
    ({"text": "a", "buttons": ((GO, PostButton(MARKED_TOO_OFTEN, GO.url)),)}, "buttons[0][1].text"),
    ({"text": "a", "links": ("https://a.example/" + MARKED_TOO_OFTEN,)}, "links[0]"),
]


@pytest.mark.parametrize(("fields", "where"), REFUSED_TEXTS)
def test_a_text_that_no_reader_can_use_is_refused_by_its_field(fields: dict[str, Any], where: str) -> None:
    with pytest.raises(InvalidPost) as refused:
        normalize(PostRequest(**fields))

    assert refused.value.field == where
    assert len(str(refused.value)) < 200


@pytest.mark.parametrize("parse_mode", [None, "HTML", "Markdown"])
def test_the_longest_text_and_the_most_marks_are_taken(parse_mode: Any) -> None:
    marks = "a" + "\u0323" * 30

    assert len(normalize(PostRequest(text="x" * 65_536, parse_mode=parse_mode)).content.text) == 65_536
    assert normalize(PostRequest(text=marks * 100, parse_mode=parse_mode)).content.text.count("\u0323") == 2900


@given(st.text(alphabet="ab \u0301\u0323\u0e38", min_size=0, max_size=200))
def test_marks_are_refused_from_the_thirty_first_in_a_row_wherever_they_begin(text: str) -> None:
    runs = [len(run) for run in re.split("[ab ]", text)]

    assert has_too_many_marks(text) == (max(runs) > 30)


def test_a_button_whose_address_outgrows_its_limit_when_encoded_is_refused() -> None:
    """The dispatcher could not read it in the plan any more."""
    request = PostRequest(text="a", buttons=(PostButton("b", "https://example.com/" + "я" * 1000),))

    with pytest.raises(InvalidPost, match="2048") as refused:
        normalize(request)

    assert refused.value.field == "buttons[0].url"
