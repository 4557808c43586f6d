from bot.support.shop_chat import Chat, rules

ASK = {
    "rule_id": "size",
    "pattern": {"keywords": ["размер"]},
    "next_state": "size",
    "response_template": "Какой размер?",
    "buttons": [
        ["Другой", {"text": "S", "callback": True}, {"text": "M", "callback": True}],
        [{"text": "Таблица", "url": "https://shop.example/"}],
    ],
}
TAKE = {
    "rule_id": "take",
    "state": "size",
    "capture": "size",
    "pattern": {"mode": "choice", "options": ["S", "M", "Другой"]},
    "response_template": "Размер {{ size }}",
    "next_state": "done",
}
DONE = {"rule_id": "done", "state": "done", "pattern": {"mode": "any"}, "next_state": "default"}
TEXTS = {"stale_button": "Эта кнопка уже не действует."}


def asked():
    chat = Chat(rules(ASK, TAKE, DONE, texts=TEXTS))
    turn = chat.say("какой размер взять")
    payloads = [button.payload for row in turn.reply.buttons for button in row if button.payload]
    return chat, turn, payloads


def test_a_rule_shows_buttons_that_say_press_and_link():
    _, turn, payloads = asked()
    assert [button.kind for row in turn.reply.buttons for button in row] == ["say", "callback", "callback", "link"]
    assert len(set(payloads)) == 2 and all(payload.startswith("size.1.") for payload in payloads)


def test_a_press_says_the_text_of_its_button():
    chat, _, (_, medium) = asked()
    turn = chat.press(medium)
    assert (turn.outcome, turn.reply.text, turn.log.message_text) == ("captured", "Размер M", "M")


def test_a_second_press_on_the_same_question_is_stale_and_changes_nothing():
    chat, _, (small, medium) = asked()
    chat.press(medium)
    before = chat.conversation

    for payload in (medium, small):
        turn = chat.press(payload)
        assert (turn.outcome, turn.reply, turn.next) == ("stale", None, None)
        assert turn.notification == "Эта кнопка уже не действует."
    assert chat.conversation == before


def test_a_press_works_after_a_wrong_answer_in_between():
    chat, _, (small, _) = asked()
    chat.say("не знаю")
    assert chat.press(small).outcome == "captured"


def test_an_expired_question_makes_its_buttons_stale():
    chat, _, (small, _) = asked()
    chat.wait(minutes=31)
    assert chat.press(small).outcome == "stale"


def test_a_question_asked_again_has_buttons_of_its_own():
    chat, _, (small, _) = asked()
    chat.say("отмена")
    chat.say("какой размер взять")
    assert chat.press(small).outcome == "stale"


def test_a_payload_that_is_not_ours_is_ignored():
    chat, _, _ = asked()
    for payload in (
        "",
        "hello",
        "a.b.c.d",
        "size.x.y.0",
        "size.1.2",
        "." * 1024,
        f"size.{'1' * 5000}.x.0",
        f"size.1.x.{'1' * 5000}",
    ):
        turn = chat.press(payload)
        assert (turn.outcome, turn.reply, turn.notification) == ("ignored", None, None)


def test_a_button_that_is_not_there_is_stale():
    chat, _, (small, _) = asked()
    assert chat.press(small[:-1] + "99").outcome == "stale"
    assert chat.press(small[:-1] + "0").outcome == "stale"  # that one says its text
