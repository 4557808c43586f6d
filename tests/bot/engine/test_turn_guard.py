"""When a scenario has taken too many turns. With ``max_turns`` 5 the fifth message escalates, whatever it says."""

import pytest
from bot.support.shop_chat import Chat, said, shop_with

LONG = ["возврат", "?", "?", "12345", "брак", "ещё", "и ещё"]
FIVE = ["matched", "invalid", "invalid", "captured", "escalated"]


def outcomes(chat, texts):
    return [chat.say(text).outcome for text in texts]


def test_the_fifth_message_escalates_whatever_it_says():
    chat = Chat()
    assert outcomes(chat, LONG[:5]) == FIVE
    assert (chat.conversation.state, chat.conversation.context) == ("default", {"turns": 0})


@pytest.mark.parametrize("max_turns", range(2, 7))
def test_the_message_that_reaches_max_turns_escalates_and_none_before(max_turns):
    chat = Chat(shop_with(returns={"max_turns": max_turns}))
    texts = ["возврат", *["?"] * (max_turns - 1)]
    assert outcomes(chat, texts) == ["matched", *["invalid"] * (max_turns - 2), "escalated"]


def test_with_one_turn_the_second_message_escalates_because_the_first_one_opened_the_scenario():
    assert outcomes(Chat(shop_with(returns={"max_turns": 1})), ["возврат", "12345"]) == ["matched", "escalated"]


def test_without_mistakes_the_scenario_ends_at_turn_three():
    assert outcomes(Chat(shop_with(returns={"max_turns": 4})), ["возврат", "12345", "брак"]) == [
        "matched",
        "captured",
        "captured",
    ]


def test_a_question_in_between_counts():
    texts = ["возврат", "доставка?", "оплата?", "гарантия?", "12345"]
    assert outcomes(Chat(), texts) == ["matched", "digressed", "digressed", "digressed", "escalated"]


def test_an_attachment_in_a_scenario_counts():
    chat = Chat()
    chat.say("возврат")
    photos = [chat.say("", attachments=("image",)).outcome for _ in range(4)]
    assert photos == ["attachment", "attachment", "attachment", "escalated"]


def test_an_expired_scenario_is_not_counted_on():
    chat = Chat()
    outcomes(chat, ["возврат", "?", "?"])
    chat.wait(minutes=31)
    assert outcomes(chat, ["возврат", "?", "?", "12345", "брак"]) == FIVE


def test_the_message_after_the_expiry_is_not_the_fifth_of_the_old_scenario():
    chat = Chat()
    outcomes(chat, ["возврат", "?", "?", "?"])
    chat.wait(minutes=31)
    assert outcomes(chat, ["доставка", "абракадабра"]) == ["matched", "clarified"]


def test_questions_of_a_friendly_customer_are_never_counted():
    texts = ["доставка", "оплата", "гарантия", "адрес", "сбп", "ремонт", "самовывоз", "чек"]
    assert outcomes(Chat(), texts) == ["matched"] * len(texts)


def test_the_rule_that_opened_the_scenario_sets_the_limit_even_after_a_release():
    chat = Chat(shop_with(returns={"max_turns": 3}))
    chat.say("возврат")
    chat.ruleset = shop_with(returns={"max_turns": 5})
    assert outcomes(chat, ["?", "?"]) == ["invalid", "escalated"]


def test_two_unmatched_messages_in_a_row_escalate():
    chat = Chat()
    assert outcomes(chat, ["абракадабра", "тарабарщина"]) == ["clarified", "escalated"]
    assert outcomes(chat, ["абракадабра", "доставка", "тарабарщина"]) == ["clarified", "matched", "clarified"]


def test_unmatched_messages_of_yesterday_do_not_count():
    chat = Chat()
    chat.say("абракадабра")
    chat.wait(days=1)
    assert chat.say("тарабарщина").outcome == "clarified"


def test_an_escalation_is_an_event_with_its_cause():
    chat = Chat()
    turns = [chat.say(text) for text in LONG[:5]]
    assert [turn.escalation and turn.escalation.code for turn in turns] == [None] * 4 + ["turn_guard"]
    assert "Передаю вопрос оператору" in said(turns[-1])
