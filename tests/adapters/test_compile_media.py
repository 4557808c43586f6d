"""Media, its captions and buttons as the messages of each platform."""

from typing import Any

import pytest
from autopost_adapters.compilers import compile_content
from autopost_contracts.payload import Button, Content, Flags, MediaType, Medium
from autopost_contracts.plan import Compiled, MediaPart, Part, Plan, Profile, TextPart

MEBIBYTE = 1024 * 1024
BUTTONS = ((Button("Read", "https://a.example/"),),)
LONG = "я" * 1025
SHORTHAND: dict[str, MediaType] = {"i": "image", "v": "video", "f": "file", "a": "audio", "n": "animation"}


def medium(type: MediaType = "image", **known: Any) -> Medium:
    return Medium(type=type, **({"blob_ref": "sha256:" + "0" * 64} | known))


def media(kinds: str, **captions: str) -> tuple[Medium, ...]:
    """``media("iv", _1="x")``: a picture, and a video with a caption."""
    return tuple(medium(SHORTHAND[kind], caption=captions.get(f"_{at}", "")) for at, kind in enumerate(kinds))


def compiled(platform: str, content: Content, flags: Flags | None = None, **settings: Any) -> Compiled:
    return compile_content(content, flags or Flags(), Profile(profile_hash="p", platform=platform, settings=settings))


def plan(platform: str, content: Content, flags: Flags | None = None, **settings: Any) -> Plan:
    answer = compiled(platform, content, flags, **settings)
    assert answer.plan is not None, answer.problems
    return answer.plan


def problems(platform: str, content: Content, **settings: Any) -> list[tuple[str, str]]:
    answer = compiled(platform, content, **settings)
    assert answer.plan is None
    return [(problem.code, problem.field) for problem in answer.problems]


def outline(plan: Plan) -> list[str]:
    """``["text", "iv", "f +buttons"]``: one word for each part, a capital for an item with a caption."""
    return [_outline(part) for part in plan.parts]


def _outline(part: Part) -> str:
    if isinstance(part, TextPart):
        drawn = "text"
    else:
        letters = {kind: letter for letter, kind in SHORTHAND.items()}
        drawn = "".join(letters[one.type].upper() if one.caption else letters[one.type] for one in part.media)
    return f"{drawn} +buttons" if part.buttons else drawn


@pytest.mark.parametrize(
    ("kinds", "parts"),
    [
        ("i", ["i"]),
        ("iv", ["iv"]),
        ("ivf", ["iv", "f"]),
        ("ffaa", ["ff", "aa"]),
        ("inni", ["i", "n", "n", "i"]),
        ("fif", ["f", "i", "f"]),
        ("i" * 10, ["i" * 10]),
        ("i" * 11, ["i" * 10, "i"]),
        ("f" * 25, ["f" * 10, "f" * 10, "f" * 5]),
    ],
)
def test_telegram_gets_albums_of_what_may_stand_together(kinds: str, parts: list[str]) -> None:
    assert outline(plan("telegram", Content(media=media(kinds)))) == parts


@pytest.mark.parametrize(
    ("kinds", "parts"),
    [
        ("iv", ["iv"]),
        ("ff", ["f", "f"]),
        ("aia", ["a", "i", "a"]),
        ("i" * 12, ["i" * 12]),
        ("i" * 13, ["i" * 12, "i"]),
    ],
)
def test_max_gets_pictures_and_videos_together_and_the_rest_one_by_one(kinds: str, parts: list[str]) -> None:
    assert outline(plan("max", Content(media=media(kinds)))) == parts


@pytest.mark.parametrize(
    ("platform", "text", "items", "parts"),
    [
        ("telegram", "a", media("iv"), ["Iv"]),
        ("telegram", "я" * 1024, media("i"), ["I"]),
        ("telegram", LONG, media("i"), ["text", "i"]),
        ("telegram", LONG, media("iv"), ["text", "iv"]),
        ("telegram", "a", media("iv", _1="own"), ["IV"]),
        ("telegram", "a", media("iv", _0="own"), ["text", "Iv"]),
        ("telegram", "a", media("iv", _1=LONG), ["text", "Iv"]),
        ("telegram", "", media("ivf", _0="own", _2=LONG), ["Iv", "text", "f"]),
        ("max", LONG, media("iv"), ["Iv"]),
        ("max", "a", media("iiv", _1="own"), ["I", "I", "v"]),
        ("max", "a", media("iv", _0="own"), ["text", "I", "v"]),
        ("max", "a", media("fa"), ["F", "a"]),
        ("max", "", media("iv", _1="я" * 4000), ["i", "V"]),
    ],
)
def test_words_are_captions_where_they_fit_and_go_before_the_media_where_not(
    platform: str, text: str, items: tuple[Medium, ...], parts: list[str]
) -> None:
    assert outline(plan(platform, Content(text=text, media=items))) == parts


def test_every_word_is_where_it_belongs() -> None:
    content = Content(text="text", media=media("iif", _1="own", _2=LONG))

    album, spilled, file = plan("telegram", content).parts

    assert isinstance(album, MediaPart)
    assert isinstance(file, MediaPart)
    assert [one.caption for one in album.media] == ["text", "own"]
    assert spilled.text == LONG
    assert file.media[0].caption == ""


def test_text_before_media_is_under_the_overflow_policy() -> None:
    content = Content(text="я" * 5000, media=media("i"))

    assert problems("telegram", content) == [("message_too_long", "text")]
    assert outline(plan("telegram", content, overflow="split")) == ["text", "text", "i"]
    assert outline(plan("max", content, overflow="split")) == ["text", "text", "i"]
    assert outline(plan("telegram", content, overflow="truncate")) == ["text", "i"]


def test_a_caption_too_long_for_any_message_is_told_by_its_item() -> None:
    assert problems("max", Content(media=media("ii", _1="я" * 4001))) == [("message_too_long", "media[1].caption")]


@pytest.mark.parametrize(
    ("platform", "text", "kinds", "parts"),
    [
        ("telegram", "a", "", ["text +buttons"]),
        ("telegram", "a", "i", ["I +buttons"]),
        ("telegram", LONG, "i", ["text", "i +buttons"]),
        ("telegram", "a", "iv", ["Iv", "text +buttons"]),
        ("telegram", "a", "ivf", ["Iv", "f +buttons"]),
        ("telegram", "a", "nii", ["N", "ii", "text +buttons"]),
        ("max", "a", "iv", ["Iv +buttons"]),
        ("max", "a", "i" * 11, ["I" + "i" * 10 + " +buttons"]),
        ("max", "a", "i" * 12, ["I" + "i" * 10, "i +buttons"]),
        ("max", "a", "if", ["I", "f +buttons"]),
    ],
)
def test_buttons_are_on_the_last_message_or_behind_an_album(
    platform: str, text: str, kinds: str, parts: list[str]
) -> None:
    assert outline(plan(platform, Content(text=text, media=media(kinds), buttons=BUTTONS))) == parts


def test_buttons_of_a_split_text_are_on_its_last_message() -> None:
    content = Content(text="я" * 5000, buttons=BUTTONS)

    assert outline(plan("telegram", content, overflow="split")) == ["text", "text +buttons"]


def test_a_row_without_buttons_is_not_there() -> None:
    made = plan("max", Content(text="a", buttons=((), *BUTTONS)))

    assert made.parts[0].buttons == BUTTONS


def test_buttons_behind_an_album_have_the_words_of_the_channel() -> None:
    content = Content(media=media("ii"), buttons=BUTTONS)

    assert plan("telegram", content).parts[1].text == "👇"
    assert plan("telegram", content, buttons_text="More:").parts[1].text == "More:"
    assert problems("telegram", content, buttons_text=" ") == [("setting_unknown", "settings.buttons_text")]


@pytest.mark.parametrize(
    ("platform", "known"),
    [
        ("telegram", {"size": 10 * MEBIBYTE + 1}),
        ("telegram", {"width": 6000, "height": 4001}),
        ("telegram", {"width": 2001, "height": 100}),
        ("telegram", {"content_type": "image/gif"}),
        ("telegram", {"content_type": "image/heic"}),
        ("max", {"size": 50 * MEBIBYTE + 1}),
        ("max", {"width": 7681, "height": 10}),
        ("max", {"content_type": "image/webp"}),
    ],
)
def test_what_is_no_picture_there_goes_as_a_file_and_the_plan_says_why(platform: str, known: dict[str, Any]) -> None:
    made = plan(platform, Content(text="a", media=(medium(**known), medium(width=10, height=10))))

    assert outline(made) == ["F", "i"]
    assert len(made.notes) == 1
    assert made.notes[0].startswith("media[0] is sent as file: ")


@pytest.mark.parametrize(
    ("platform", "known"),
    [
        ("telegram", {"size": 10 * MEBIBYTE, "content_type": "image/webp"}),
        ("telegram", {"width": 6000, "height": 4000}),
        ("telegram", {"width": 2000, "height": 100}),
        ("telegram", {"width": 99999}),
        ("telegram", {"content_type": "image/gif", "blob_ref": None, "file_id": "AgAC"}),
        ("max", {"size": 50 * MEBIBYTE, "width": 7680, "height": 7680, "content_type": "image/gif"}),
    ],
)
def test_a_picture_at_its_limits_or_of_unknown_shape_stays_one(platform: str, known: dict[str, Any]) -> None:
    made = plan(platform, Content(media=(medium(**known),)))

    assert outline(made) == ["i"]
    assert made.notes == ()


@pytest.mark.parametrize(
    ("platform", "type", "allowed"),
    [
        ("telegram", "video", 50),
        ("telegram", "animation", 50),
        ("telegram", "audio", 50),
        ("telegram", "file", 50),
        ("max", "video", 250),
        ("max", "audio", 256),
        ("max", "file", 4096),
    ],
)
def test_media_over_its_size_is_told_by_its_place(platform: str, type: MediaType, allowed: int) -> None:
    fitting, larger = medium(type, size=allowed * MEBIBYTE), medium(type, size=allowed * MEBIBYTE + 1)

    assert plan(platform, Content(media=(fitting,))).parts
    assert problems(platform, Content(media=(fitting, larger))) == [("media_too_large", "media[1]")]


def test_a_picture_too_large_for_a_file_as_well_is_told() -> None:
    large = medium(size=50 * MEBIBYTE + 1)

    assert problems("telegram", Content(media=(large,))) == [("media_too_large", "media[0]")]


@pytest.mark.parametrize(
    ("content_type", "sent_as"), [("image/gif", "i"), ("video/mp4", "v"), (None, "v"), ("image/apng", "f")]
)
def test_an_animation_is_a_picture_or_a_video_on_max(content_type: str | None, sent_as: str) -> None:
    made = plan("max", Content(media=(medium("animation", content_type=content_type),)))

    assert outline(made) == [sent_as]
    assert made.notes


def test_a_video_that_max_does_not_play_goes_as_a_file() -> None:
    avi = medium("video", content_type="video/x-msvideo")

    assert outline(plan("max", Content(media=(avi,)))) == ["f"]
    assert outline(plan("telegram", Content(media=(avi,)))) == ["v"]


def test_an_id_of_a_provider_goes_to_that_provider_alone() -> None:
    telegrams = Content(media=(Medium(type="image", file_id="AgAC"),))
    maxs = Content(media=(Medium(type="image", attachment_token="t"),))

    assert plan("telegram", telegrams).parts
    assert plan("max", maxs).parts
    assert problems("max", telegrams) == [("validation_failed", "media[0]")]
    assert problems("telegram", maxs) == [("validation_failed", "media[0]")]
    assert problems("max", Content(media=(Medium(type="image"),))) == [("validation_failed", "media[0]")]


def test_an_address_is_enough_only_for_a_picture_on_max_where_the_channel_allows_it() -> None:
    picture = Content(media=(Medium(type="image", url="https://a.example/b.png"),))
    video = Content(media=(Medium(type="video", url="https://a.example/b.mp4"),))
    strange = Content(media=(Medium(type="image", url="file:///b.png"),))
    allowed = {"upload_policy": {"image": "url_allowed", "video": "url_allowed"}}

    assert plan("max", picture, **allowed).parts
    assert problems("max", picture) == [("upload_required", "media[0]")]
    assert problems("max", video, **allowed) == [("upload_required", "media[0]")]
    assert problems("telegram", picture, **allowed) == [("upload_required", "media[0]")]
    assert problems("max", strange, **allowed) == [("upload_required", "media[0]")]


ALLOWED = {"upload_policy": {"image": "url_allowed"}}


@pytest.mark.parametrize(
    "url",
    [
        "http://localhost/a.png",
        "http://127.0.0.1/a.png",
        "http://127.1/a.png",
        "http://2130706433/a.png",
        "http://0x7f000001/a.png",
        "http://10.0.0.7:8080/a.png",
        "http://169.254.169.254/latest/meta-data",
        "http://[::1]/a.png",
        "http://[fd00::1]/a.png",
        "http://[::ffff:10.0.0.1]/a.png",
        "http://store/a.png",
        "http://store.internal/a.png",
        "http://store.svc.cluster.local/a.png",
        "http://store.local./a.png",
        "https://ann:hush@a.example/a.png",
        "https://ann@a.example/a.png",
        "ftp://a.example/a.png",
        "https:///a.png",
        "http://[/a.png",
    ],
)
def test_an_address_from_inside_or_with_credentials_is_never_passed_on(url: str) -> None:
    assert problems("max", Content(media=(Medium(type="image", url=url),)), **ALLOWED) == [
        ("upload_required", "media[0]")
    ]


def test_an_item_with_bytes_and_url_goes_by_url_only_where_that_is_allowed() -> None:
    both = Content(type="media", text="a", media=(medium("image", url="https://a.example/b.png", size=7),))

    by_url, by_bytes, telegram = plan("max", both, **ALLOWED), plan("max", both), plan("telegram", both, **ALLOWED)

    def sources(made: Plan) -> list[tuple[str | None, str | None]]:
        return [(item.url, item.blob_ref) for part in made.parts if isinstance(part, MediaPart) for item in part.media]

    assert sources(by_url) == [("https://a.example/b.png", None)]
    assert sources(by_bytes) == sources(telegram) == [(None, medium().blob_ref)]
    assert by_url.notes == ("media[0] is sent by URL: max fetches it",)
    assert by_bytes.notes == ()


def test_an_address_from_inside_goes_by_its_bytes_where_there_are_some() -> None:
    both = Content(type="media", media=(medium("image", url="http://10.0.0.7/b.png"),))

    [part] = plan("max", both, **ALLOWED).parts

    assert isinstance(part, MediaPart)
    assert (part.media[0].url, part.media[0].blob_ref) == (None, medium().blob_ref)


def test_what_is_known_of_an_item_reaches_its_plan() -> None:
    known = {"content_type": "application/pdf", "size": 7, "name": "a.pdf"}

    [part] = plan("telegram", Content(text="<b>a</b>", parse_mode="HTML", media=(medium("file", **known),))).parts

    assert isinstance(part, MediaPart)
    [item] = part.media
    assert (item.content_type, item.size, item.name, item.blob_ref) == (
        "application/pdf",
        7,
        "a.pdf",
        medium().blob_ref,
    )
    assert (item.caption, item.markup) == ("<b>a</b>", "html")


def test_a_caption_is_above_what_can_be_seen_where_the_channel_says_so() -> None:
    made = plan("telegram", Content(text="a", media=media("ifi", _1="b")), caption_above=True)

    assert [isinstance(part, MediaPart) and part.caption_above for part in made.parts] == [True, False, False]


def test_all_parts_are_silent_and_protected_together() -> None:
    content = Content(text=LONG, media=media("ii"), buttons=BUTTONS)

    by_post = plan("telegram", content, Flags(silent=True, protect=True))
    by_channel = plan("telegram", content, silent=True, protect=True)

    assert by_post == by_channel
    assert [(part.silent, part.protect) for part in by_post.parts] == [(True, True)] * 3


def test_max_drops_what_it_cannot_do_and_the_plan_names_it() -> None:
    made = plan("max", Content(text="a", media=media("i")), Flags(silent=True, protect=True), caption_above=True)

    assert [word for word in ("silent", "protect", "caption_above") if any(word in note for note in made.notes)] == [
        "silent",
        "protect",
        "caption_above",
    ]
    assert made.parts == plan("max", Content(text="a", media=media("i"))).parts


def test_where_one_caption_cannot_be_shown_the_whole_post_goes_plain() -> None:
    items = (medium(caption='<a href="https://a.example/">b</a> <mark>c</mark>'),)
    content = Content(text="<b>a</b>", parse_mode="HTML", media=(medium(), *items))

    made = plan("telegram", content, on_markup="plain")

    assert problems("telegram", content) == [("markup_unsupported", "media[1].caption")]
    assert made.parts[0].text == "a\n\nb (https://a.example/) c"
    assert "<mark>" in made.notes[0]
