"""The table of media: what a creative is sent as, with buttons and without."""

import msgspec
import pytest
from autopost_adapters.compilers import compile_content
from autopost_contracts.plan import MediaPart, Plan, Profile, TextPart
from autopost_ingest.posts.normalize import normalize
from autopost_ingest.publications.creative import CreativeDraft, request_of

BUTTON = {"text": "Buy", "url": "https://shop.example.com/"}


def planned(**creative) -> Plan:
    draft = msgspec.convert({"text": "<b>Sale</b>", **creative}, CreativeDraft)
    normalized = normalize(request_of(draft))
    profile = Profile(profile_hash="p", platform="telegram")
    compiled = compile_content(normalized.content, normalized.flags, profile)
    assert compiled.problems == ()
    assert compiled.plan is not None
    return compiled.plan


def item(kind: str, nth: int = 0) -> dict[str, str]:
    return {"type": kind, "file_id": f"AgACAgIAAxkBAAIB{nth}"}


def test_text_is_one_message_with_its_buttons():
    [part] = planned(buttons=[BUTTON]).parts

    assert isinstance(part, TextPart)
    assert (part.text, part.markup) == ("<b>Sale</b>", "html")
    assert [(one.text, one.url) for row in part.buttons for one in row] == [("Buy", "https://shop.example.com/")]


@pytest.mark.parametrize(
    ("kind", "type_"), [("photo", "image"), ("video", "video"), ("document", "file"), ("animation", "animation")]
)
@pytest.mark.parametrize("buttons", [[], [BUTTON]], ids=["plain", "buttons"])
def test_a_single_medium_has_caption_and_buttons_on_it(kind, type_, buttons):
    [part] = planned(media=[item(kind)], buttons=buttons).parts

    assert isinstance(part, MediaPart)
    [medium] = part.media
    assert (medium.type, medium.caption, medium.markup) == (type_, "<b>Sale</b>", "html")
    assert len(part.buttons) == len(buttons)


@pytest.mark.parametrize("count", [2, 10])
def test_an_album_has_its_caption_on_the_first_item_and_its_buttons_in_a_message_of_their_own(count):
    media = [item("photo" if nth % 2 else "video", nth) for nth in range(count)]

    album, buttons = planned(media=media, buttons=[[BUTTON, BUTTON]]).parts

    assert isinstance(album, MediaPart)
    assert isinstance(buttons, TextPart)
    assert [medium.caption for medium in album.media] == ["<b>Sale</b>"] + [""] * (count - 1)
    assert (album.buttons, len(buttons.buttons[0])) == ((), 2)


def test_an_album_without_buttons_is_one_call():
    assert len(planned(media=[item("photo"), item("photo", 1)]).parts) == 1


@pytest.mark.parametrize("disabled", [True, False])
def test_the_preview_of_a_link_is_as_the_author_says(disabled):
    [part] = planned(text='<a href="https://example.com">x</a>', disable_web_page_preview=disabled).parts

    assert isinstance(part, TextPart)
    assert part.preview.disabled is disabled


def test_text_without_a_parse_mode_is_html_unless_the_author_says_otherwise():
    assert msgspec.convert({}, CreativeDraft).parse_mode == "HTML"
    [part] = planned(text="a < b", parse_mode=None).parts
    assert isinstance(part, TextPart)
    assert (part.text, part.markup) == ("a < b", "plain")
