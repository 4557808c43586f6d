"""Of too many messages in a minute the first one gets the text of a flood; nothing else happens."""

from bot.support.shop_chat import Chat, rules, said, shop_with

FLOOD = "Получили ваши сообщения, ответим чуть позже."


def test_the_customer_is_told_and_the_scenario_goes_on_where_it_was():
    chat = Chat()
    chat.say("возврат")
    before = chat.conversation

    turn = chat.say("12345", flooded=True)

    assert (turn.outcome, said(turn), turn.notification) == ("flooded", FLOOD, None)
    assert chat.conversation.state == before.state and chat.conversation.context == before.context
    assert chat.say("12345").outcome == "captured"


def test_a_cancel_word_a_start_and_a_photo_are_no_exception():
    for fields in ({"text": "отмена"}, {"kind": "start"}, {"attachments": ("image",)}):
        chat = Chat()
        chat.say("возврат")
        turn = chat.get(**{"kind": "message", **fields}, flooded=True)
        assert (turn.outcome, turn.next, said(turn)) == ("flooded", None, FLOOD)


def test_who_pressed_a_button_is_told_beside_it_and_the_button_stays():
    turn = Chat().get(kind="press", payload="x", callback_id="c", flooded=True)
    assert (turn.outcome, said(turn), turn.notification) == ("flooded", FLOOD, FLOOD)


def test_nothing_is_said_to_whom_an_operator_has_and_by_a_shop_without_the_text():
    chat = Chat(shop_with(settings={"escalation": {"mode": "handoff", "hold": "1 hour"}}))
    chat.say("абракадабра")
    chat.say("тарабарщина")
    assert chat.conversation.state == "operator"
    assert (chat.say("ау", flooded=True).outcome, chat.conversation.state) == ("silent", "operator")

    turn = Chat(rules({"rule_id": "a", "pattern": {"keywords": ["а"]}})).say("а", flooded=True)
    assert (turn.outcome, turn.reply) == ("flooded", None)
