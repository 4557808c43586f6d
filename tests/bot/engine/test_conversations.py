"""Conversations that are written down, run by the engine alone."""

from datetime import date

import pytest
import yaml
from autopost_bot.engine.conversations import Dialog, InvalidConversation, run_conversations, run_phrases
from autopost_bot.engine.ruleset import InvalidRule, load_ruleset
from bot.support.shop_chat import EXAMPLES, shop


def failures(*turns, **fields):
    return [(one.turn, one.field, one.found) for one in run_conversations(shop(), [{"turns": list(turns), **fields}])]


def test_the_conversations_of_the_repository_go_as_they_are_written():
    conversations = yaml.safe_load((EXAMPLES / "conversations.yaml").read_text())
    assert len(conversations) >= 10
    assert list(run_conversations(shop(), conversations)) == []


def test_an_expectation_that_is_not_met_is_a_failure_that_says_what_was_found():
    assert failures({"say": "доставка", "rule": "payment", "state": "default"}) == [(1, "rule", "delivery")]
    assert failures({"say": "доставка"}, {"say": "оплата", "reply_contains": "луна"})[0][:2] == (2, "reply_contains")


def test_time_passes_only_where_it_is_written():
    ask = {"say": "возврат"}
    assert failures(ask, {"wait": "29m"}, {"say": "12345", "outcome": "captured"}) == []
    assert failures(ask, {"wait": "31m"}, {"say": "12345", "outcome": "clarified"}) == []


def test_a_conversation_begins_when_it_says():
    turns = [{"say": "а"}, {"say": "б", "reply_contains": "ответим"}]
    assert failures(*turns, at="2026-03-03T23:00:00+03:00") == []
    assert len(failures(*turns, at="2026-03-03T12:00:00+03:00")) == 1


@pytest.mark.parametrize("at", ["foo", date(2026, 3, 3), 5])
def test_a_beginning_that_is_no_moment_is_named(at):
    with pytest.raises(InvalidConversation, match="at: "):
        failures({"say": "а"}, at=at)


@pytest.mark.parametrize(
    ("turn", "named"),
    [
        ({"say": "а", "context": "a"}, "context"),
        ({"wait": "9999999999 days"}, "duration"),
        ({"wait": "9999999 days"}, "wait"),
        ({"wait": float("inf")}, "duration"),
    ],
)
def test_a_turn_with_an_odd_value_is_named(turn, named):
    with pytest.raises(InvalidConversation, match=f"turn 2: .*{named}"):
        failures({"say": "а"}, turn)


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        (5, "mapping"),
        ([], "mapping"),
        ({"state_ttl": float("inf")}, "state_ttl"),
        ({"state_ttl": float("nan")}, "state_ttl"),
        ({"late_after": "99999999999 days"}, "late_after"),
        ({"escalation": 5}, "escalation"),
        ({"escalation": {"hold": "soon"}}, "escalation.hold"),
    ],
)
def test_settings_that_cannot_be_read_are_named(settings, named):
    with pytest.raises(InvalidRule, match=f"settings: .*{named}"):
        load_ruleset([], settings)


@pytest.mark.parametrize(
    "turn", [{}, "доставка", {"says": "x"}, {"say": "x", "reply_is": "y"}, {"press": "нет такой"}, {"wait": "soon"}]
)
def test_a_turn_that_is_not_written_as_it_should_be_is_named(turn):
    with pytest.raises(InvalidConversation, match="turn 2"):
        failures({"say": "доставка"}, turn)


def test_phrases_are_judged_by_intent():
    found = list(run_phrases(shop(), {"delivery": ["доставка", "оплата"], "none": ["привет", "гарантия", "доставка"]}))
    assert [(one.expected, one.field, one.found) for one in found] == [
        ("delivery", "оплата", "payment"),
        ("none", "доставка", "delivery"),
    ]


def test_a_dialog_presses_the_button_with_this_text():
    dialog = Dialog(shop())
    dialog.say("абракадабра")
    assert dialog.press("Доставка").log.matched_rule_id == "delivery"


def test_the_conversation_of_the_page_goes_as_it_is_shown():
    page = (EXAMPLES.parents[1] / "docs" / "bot.md").read_text(encoding="utf-8")
    rows = [line.strip("| ").split(" | ") for line in page.partition("| Customer | Bot |")[2].splitlines()[2:]]
    shown = [row for row in rows[: rows.index([""])] if len(row) == 2]
    dialog = Dialog(shop())
    assert len(shown) == 5
    for text, answer in shown:
        reply = dialog.say(text).reply
        assert reply is not None and " ".join(reply.text.split()) == answer
