"""What a reader sees as one character is never torn apart."""

import pytest
from autopost_adapters.markup.graphemes import is_boundary


@pytest.mark.parametrize(
    "whole",
    [
        "\r\n", "e\u0301", "a\u0308\u0323", "👩‍👩‍👧‍👦", "🏳️‍🌈", "👍🏽", "❤️", "🇩🇪", "1️⃣",
        "한", "\u1112\u1161\u11ab", "각\u11a8", "क्षि", "ก็",
        "กำ", "\u0600١", "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f", "נִ", "ｶﾞ",
    ],
)  # fmt: skip
def test_one_character_has_its_boundaries_only_at_its_ends(whole: str) -> None:
    text = f"x{whole}x"

    boundaries = [at for at in range(len(text) + 1) if is_boundary(text, at)]

    assert boundaries == [0, 1, len(text) - 1, len(text)]


def test_flags_are_told_apart_two_letters_at_a_time() -> None:
    text = "🇩🇪🇫🇷🇮🇹"

    assert [at for at in range(len(text) + 1) if is_boundary(text, at)] == [0, 2, 4, 6]


@pytest.mark.parametrize("text", ["ab", "яж", "a\n", "\n\u0301", "🦊🦊", "漢字", "가나", "a👍"])
def test_two_characters_can_be_parted(text: str) -> None:
    assert is_boundary(text, 1)
