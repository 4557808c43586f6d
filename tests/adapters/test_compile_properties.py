"""Whatever a post is, there is a lawful plan for it or a problem with a name; the same each time."""

from itertools import pairwise
from typing import Any

import msgspec
import pytest
from autopost_adapters.compilers import compile_content
from autopost_adapters.markup.graphemes import is_boundary
from autopost_adapters.max.compile import compile_content as compile_for_max
from autopost_adapters.max.limits import LIMITS as MAX
from autopost_adapters.planning import compile_post as module
from autopost_adapters.planning.compile_post import compile_post
from autopost_adapters.planning.limits import Limits
from autopost_adapters.telegram.compile import compile_content as compile_for_telegram
from autopost_adapters.telegram.limits import LIMITS as TELEGRAM
from autopost_contracts.payload import Button, Content, Flags, MediaType, Medium
from autopost_contracts.plan import MediaPart, Plan, Profile, TextPart
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from adapters.random_markup import SCRAPS

TYPES: list[MediaType] = ["image", "video", "animation", "audio", "file"]
BUTTONS = ((Button("Read", "https://a.example/"),),)
MARKUP = [
    "<b>",
    "</b>",
    "<i>",
    "</i>",
    "<a href='https://a.example/'>",
    "</a>",
    "<br>",
    "<",
    "**",
    "_",
    "[x](https://b.example/)",
]

often = settings(max_examples=250, deadline=None)
words = st.lists(st.sampled_from(SCRAPS + MARKUP), max_size=25).map("".join)
parse_modes = st.sampled_from(["HTML", "Markdown", None])
platforms = st.sampled_from(["telegram", "max"])


@often
@given(
    text=st.text(max_size=40) | words,
    caption=st.text(max_size=10) | words,
    parse_mode=parse_modes,
    platform=platforms,
    settings=st.fixed_dictionaries(
        {},
        optional={
            "overflow": st.sampled_from(["split", "truncate", "", None]),
            "on_markup": st.sampled_from(["plain", "fail", 1]),
            "buttons_text": st.text(max_size=3),
        },
    ),
)
def test_a_plan_or_problems_for_any_post_and_the_same_each_time(
    text: str, caption: str, parse_mode: Any, platform: str, settings: dict[str, Any]
) -> None:
    content = Content(
        text=text, parse_mode=parse_mode, media=(Medium(type="image", blob_ref="b", caption=caption),) * 2
    )
    profile = Profile(profile_hash="p", platform=platform, settings=settings)

    answer = compile_content(content, Flags(), profile)

    assert (answer.plan is None) == bool(answer.problems)
    assert answer == compile_content(content, Flags(), profile)
    assert answer.plan is None or msgspec.convert(msgspec.to_builtins(answer.plan), Plan) == answer.plan


@st.composite
def posts(draw: st.DrawFn) -> Content:
    captions = st.sampled_from(["", "", "own", "own caption of some length"])
    items = draw(st.lists(st.tuples(st.sampled_from(TYPES), captions), max_size=25))
    media = [Medium(type=kind, blob_ref=str(at), caption=caption) for at, (kind, caption) in enumerate(items)]
    text = draw(st.sampled_from(["", "a", "a text", "a text that is too long for a caption"]))
    return Content(
        text=text if media else text or "a", media=tuple(media), buttons=BUTTONS if draw(st.booleans()) else ()
    )


@often
@given(content=posts(), platform=platforms, size=st.integers(1, 12), caption=st.integers(1, 40))
def test_a_plan_keeps_order_words_and_rules_for_any_media_and_limits(
    content: Content, platform: str, size: int, caption: int
) -> None:
    limits = TELEGRAM if platform == "telegram" else MAX
    limits = replace(
        limits, album=replace(limits.album, size=size), text=replace(limits.text, caption=caption, text=60)
    )
    compile_with = compile_for_telegram if platform == "telegram" else compile_for_max

    answer = compile_with(content, Flags(), Profile(profile_hash="p", platform=platform), limits)

    assert answer.plan is not None
    obeys(answer.plan, limits)
    says_everything(answer.plan, content)


looks = st.fixed_dictionaries(
    {},
    optional={
        "overflow": st.sampled_from(["fail", "split", "truncate"]),
        "silent": st.booleans(),
        "protect": st.booleans(),
        "disable_preview": st.booleans(),
        "preview_size": st.sampled_from(["small", "large"]),
        "preview_above": st.booleans(),
        "caption_above": st.booleans(),
    },
)


@often
@given(
    content=st.builds(Content, text=words | st.text(max_size=80)),
    flags=st.builds(Flags, st.booleans(), st.booleans(), st.booleans()),
    look=looks,
    platform=platforms,
)
def test_the_short_way_of_a_plain_text_leads_where_the_long_one_does(
    content: Content, flags: Flags, look: dict[str, Any], platform: str
) -> None:
    limits = TELEGRAM if platform == "telegram" else MAX
    limits = replace(limits, text=replace(limits.text, text=60))
    profile = Profile(profile_hash="p", platform=platform, settings=look)

    short = compile_post(content, flags, profile, limits)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_plain", lambda *_: None)
        long = compile_post(content, flags, profile, limits)

    assert short == long


def obeys(plan: Plan, limits: Limits) -> None:
    for part in plan.parts:
        if isinstance(part, TextPart):
            assert 1 <= len(part.text) <= limits.text.text
            continue
        types = {item.type for item in part.media}
        room = limits.album.size - (bool(part.buttons) and limits.album.buttons_count)
        assert len(part.media) == 1 or len(part.media) <= room
        assert len(part.media) == 1 or any(types <= group for group in limits.album.together)
        assert all(len(item.caption) <= limits.text.caption for item in part.media)
        assert limits.album.captions or not any(item.caption for item in part.media[1:])
        assert limits.album.buttons or len(part.media) == 1 or not part.buttons


def says_everything(plan: Plan, content: Content) -> None:
    items = [item for part in plan.parts if isinstance(part, MediaPart) for item in part.media]
    texts = [part.text for part in plan.parts if isinstance(part, TextPart) and part.text != "👇"]
    captions = [item.caption for item in items if item.caption]
    said = ([content.text] if content.text else []) + [medium.caption for medium in content.media if medium.caption]

    assert [item.blob_ref for item in items] == [medium.blob_ref for medium in content.media]
    assert sorted(texts + captions) == sorted(said)
    assert [bool(part.buttons) for part in plan.parts] == [False] * (len(plan.parts) - 1) + [bool(content.buttons)]
    for item, medium in zip(items, content.media, strict=True):
        assert not medium.caption or item.caption in ("", medium.caption)


@often
@given(
    st.lists(st.sampled_from(["🇩", "🇪", "👩", "\u200d", "👧", "e", "\u0301", "\r", "\n", " ", "🏽"]), min_size=1).map(
        "".join
    )
)
def test_no_boundary_is_inside_a_pair_that_belongs_together(text: str) -> None:
    boundaries = [at for at in range(len(text) + 1) if is_boundary(text, at)]

    for start, end in pairwise(boundaries):
        assert end > start
    for at in boundaries[1:-1]:
        assert text[at] not in "\u0301\u200d🏽" or text[at - 1] in "\r\n"
        assert text[at - 1] != "\u200d" or text[at] in "\r\n"
        assert text[at - 1 : at + 1] != "\r\n"
