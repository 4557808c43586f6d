"""Whatever a customer writes and a tenant's rules say, a turn is decided before anybody else notices."""

from contextlib import suppress
from time import process_time

import pytest
from autopost_bot.engine.match import match
from bot.support.shop_chat import rules, shop
from harness.hostile_texts import TEXTS, Text

AS_LARGE_AS_STORED = 250_000
BUDGET = 0.05
"""Seconds of the loop of all tenants."""
UNSPACED: dict[str, Text] = {
    character: (lambda size, character=character: character * size)
    for character in ("д", "ß", "㍿", "㌖", "\ufdfa", "a\u0301", "1", "@", "+7 ", "a@b.")
}
FUZZY = rules(
    {"rule_id": "r", "pattern": {"mode": "contains", "keywords": ["доставка"], "fuzzy": True, "layout": True}},
    {"rule_id": "l", "pattern": {"mode": "words", "keywords": ["ß" * 2000, "гаранти*"], "fuzzy": True}},
)


@pytest.mark.parametrize("name", [*UNSPACED, *TEXTS])
def test_no_text_of_a_customer_takes_long_to_match(name: str) -> None:
    text = (UNSPACED | TEXTS)[name](AS_LARGE_AS_STORED)

    assert min(_seconds(text) for _ in range(3)) < BUDGET


def _seconds(text: str) -> float:
    begun = process_time()
    with suppress(ValueError):
        match(FUZZY, None, text)
        match(shop(), "default", text)
    return process_time() - begun
