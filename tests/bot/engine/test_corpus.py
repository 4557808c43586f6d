"""The rules of the seed, judged by messages as customers write them.

``corpus.yaml`` was there before the rules, ``corpus_second_half.yaml`` too, but the rules were written without it.
"""

import pytest
import yaml
from autopost_bot.engine.decide import decide
from autopost_bot.engine.turn import Conversation, Update
from bot.support.shop_chat import EXAMPLES, NOON, shop

FIVE = ("delivery", "payment", "returns", "warranty", "contacts")
LEAST = 0.95
HALVES = ("corpus.yaml", "corpus_second_half.yaml")


def phrases(half):
    return yaml.safe_load((EXAMPLES / half).read_text())


def intent_of(text):
    turn = decide(shop(), Conversation(), Update(key="k", kind="message", at=NOON, text=text))
    rule = turn.log.matched_rule_id
    return shop().by_id[rule].intent if rule else None


@pytest.mark.parametrize("half", HALVES)
def test_at_least_95_percent_of_the_questions_are_answered_rightly(half):
    asked = [(intent, text) for intent in FIVE for text in phrases(half)[intent]]
    wrong = [(intent, text, intent_of(text)) for intent, text in asked if intent_of(text) != intent]
    assert len(wrong) <= len(asked) * (1 - LEAST), wrong


@pytest.mark.parametrize("half", HALVES)
def test_no_other_message_gets_one_of_the_five_answers(half):
    assert [(text, intent_of(text)) for text in phrases(half)["none"] if intent_of(text) in FIVE] == []


def test_the_corpus_is_large_enough():
    for intent in FIVE:
        assert sum(len(set(phrases(half)[intent])) for half in HALVES) >= 12
    assert sum(len(set(phrases(half)["none"])) for half in HALVES) >= 40
