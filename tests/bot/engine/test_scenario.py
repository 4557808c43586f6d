"""The returns scenario of the seed, word by word."""

import pytest
from bot.support.shop_chat import Chat, said, shop_with

NUMBER = "Поможем с возвратом. Напишите, пожалуйста, номер заказа."
INVALID = "Не нашёл номера заказа. Напишите его цифрами, например 12345, или «отмена»."
REASON = "Заказ 12345. Что случилось с товаром: не подошёл, брак или ошибка в заказе?"


def test_a_return_takes_three_messages():
    chat = Chat()

    assert said(chat.say("Хочу вернуть товар")) == NUMBER
    assert said(chat.say("заказ №12345")) == REASON
    assert said(chat.say("брак, и доставка опоздала")).startswith(
        "Приняли: заказ 12345, причина «брак, и доставка опоздала»."
    )
    assert (chat.conversation.state, chat.conversation.context) == ("default", {"turns": 0})
    assert chat.conversation.expires_at is None


def test_a_text_without_a_number_is_told_so_and_the_question_is_not_repeated():
    chat = Chat()
    chat.say("Хочу вернуть товар")

    turn = chat.say("не помню")

    assert (turn.outcome, said(turn), chat.conversation.state) == ("invalid", INVALID, "returns_order")


def test_a_question_in_between_is_answered_once_and_the_scenario_asks_again_once():
    chat = Chat()
    chat.say("Хочу вернуть товар")

    turn = chat.say("а доставка платная?")

    assert turn.outcome == "digressed"
    assert said(turn).startswith("Доставляем по всей России")
    assert said(turn).endswith(f"\n\n{NUMBER}")
    assert said(turn).count(NUMBER) == 1
    assert said(chat.say("12345")) == REASON


def test_a_cancel_word_ends_a_scenario_and_shows_the_menu():
    chat = Chat()
    chat.say("Хочу вернуть товар")

    turn = chat.say("Отмена!")

    assert (turn.outcome, said(turn), chat.conversation.state) == (
        "cancelled",
        "Хорошо, начнём сначала. Чем помочь?",
        "default",
    )
    assert [button.text for row in turn.reply.buttons for button in row] == [
        "Доставка",
        "Оплата",
        "Возврат",
        "Гарантия",
        "Контакты",
    ]


@pytest.mark.parametrize("text", ["отмена", "{{ order_number }}", "<b>жирно</b>", "x" * 4000, "{% for a in b %}"])
def test_no_words_are_captured_as_an_order_number(text):
    chat = Chat()
    chat.say("Хочу вернуть товар")
    chat.say(text)
    assert "order_number" not in chat.conversation.context


def test_a_photo_is_no_order_number():
    chat = Chat()
    chat.say("Хочу вернуть товар")
    turn = chat.say("", attachments=("image",))
    assert (turn.outcome, chat.conversation.state) == ("attachment", "returns_order")
    assert chat.conversation.context["turns"] == 2


@pytest.mark.parametrize(
    ("reason", "shown"),
    [
        ("{{ order_number }}", "{{ order_number }}"),
        ("<b>брак</b>", "<b>брак</b>"),
        ("б\x00рак", "б рак"),
        ("ы" * 4000, "ы" * 200),
        ("не\n\nподошло", "не подошло"),
    ],
)
def test_a_captured_value_is_plain_text_in_the_reply_and_at_most_200_characters(reason, shown):
    chat = Chat()
    chat.say("Хочу вернуть товар")
    chat.say("12345")

    turn = chat.say(reason)

    assert f"причина «{shown}»." in said(turn)
    assert turn.plan is not None and len(turn.plan.parts) == 1


def test_a_global_rule_with_a_next_state_switches_to_its_scenario():
    repair = {"state": None, "next_state": "returns_reason", "max_turns": 3}
    chat = Chat(shop_with(warranty=repair))
    chat.say("Хочу вернуть товар")
    chat.say("гарантия?")
    assert chat.conversation.state == "returns_reason"
    assert chat.conversation.context["opened_by"] == {"rule_id": "warranty", "version": 1, "max_turns": 3}
    assert chat.conversation.context["turns"] == 1


def test_the_state_of_a_deleted_rule_starts_anew():
    chat = Chat()
    chat.say("Хочу вернуть товар")
    chat.ruleset = shop_with(without=("returns_order",))

    turn = chat.say("доставка")

    assert turn.log.meta["state_unknown"] is True
    assert (turn.log.matched_rule_id, turn.log.state_before, turn.log.state_after) == (
        "delivery",
        "returns_order",
        "default",
    )


def test_what_is_asked_beside_the_answered_question_becomes_a_button():
    turn = Chat().say("Как оплатить, и сколько стоит доставка?")
    assert turn.log.matched_rule_id == "delivery"
    assert [button.text for row in turn.reply.buttons for button in row] == ["Оплата"]


def test_a_missing_variable_is_empty_and_the_log_names_it():
    chat = Chat(shop_with(delivery={"response_template": "Заказ {{ order_number }} в пути"}))
    turn = chat.say("доставка")
    assert (said(turn), turn.log.meta["missing"]) == ("Заказ  в пути", ["order_number"])


def test_the_log_line_says_rule_version_keywords_and_states():
    log = Chat().say("Хочу вернуть товар").log
    assert (log.matched_rule_id, log.rule_version, log.state_before, log.state_after) == (
        "returns",
        1,
        "default",
        "returns_order",
    )
    assert (log.message_text, log.response_preview) == ("Хочу вернуть товар", NUMBER)
    assert log.meta["outcome"] == "matched"
    assert (log.meta["matched_by"], log.meta["keywords"]) == ("exact", ["вернуть"])
