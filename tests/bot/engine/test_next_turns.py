"""Several updates of one chat, and updates on which the engine fails."""

from datetime import timedelta

from autopost_bot.engine.next_turns import next_turns
from autopost_bot.engine.turn import Conversation, Update
from bot.support.shop_chat import NOON, rules, shop, shop_with


def message(key, text="", seconds=0, **fields):
    at = NOON + timedelta(seconds=seconds)
    return Update(
        **{"key": key, "kind": "message", "at": at, "provider_ms": int(at.timestamp() * 1000), "text": text, **fields}
    )


def test_one_reply_at_a_time():
    turns = next_turns(shop(), Conversation(), [message("a", "доставка"), message("b", "оплата")])
    assert [(turn.key, turn.outcome) for turn in turns] == [("a", "matched")]


def test_silent_updates_are_ended_on_the_way_to_the_next_reply():
    newest = int(NOON.timestamp() * 1000)
    old = [message(key, "абракадабра", seconds=-60) for key in "ab"]
    turns = next_turns(shop(), Conversation(newest_ms=newest), [*old, message("c", "доставка")])
    assert [(turn.key, turn.outcome) for turn in turns] == [("a", "silent"), ("b", "silent"), ("c", "matched")]


def test_texts_that_wait_together_make_one_turn_where_the_settings_say_so():
    gathering = shop_with(settings={"gather": 3})
    updates = [
        message("a", "Здравствуйте"),
        message("b", "сколько стоит", 1),
        message("c", "доставка", 2),
        message("d", "оплата", 3),
    ]

    turns = next_turns(gathering, Conversation(), updates)

    assert [(turn.key, turn.outcome) for turn in turns] == [("a", "gathered"), ("b", "gathered"), ("c", "matched")]
    assert turns[-1].log.meta["gathered"] == ["a", "b"]
    assert [turn.log.message_text for turn in turns] == ["Здравствуйте", "сколько стоит", "доставка"]


def test_a_cancel_word_a_photo_and_a_start_are_never_joined():
    gathering = shop_with(settings={"gather": 5})
    for other in (message("b", "отмена"), message("b", attachments=("image",)), message("b", kind="start")):
        turns = next_turns(gathering, Conversation(), [message("a", "доставка"), other])
        assert [turn.key for turn in turns] == ["a"]


def poisoned():
    """A template that fails for this word alone."""
    loop = "{% for a in (1..900) %}{% for b in (1..900) %}x{% endfor %}{% endfor %}"
    return rules(
        {"rule_id": "bad", "pattern": {"keywords": ["яд"]}, "response_template": loop},
        {"rule_id": "good", "pattern": {"keywords": ["привет"]}},
        texts={"escalate": "Оператор ответит."},
    )


def test_an_update_on_which_the_engine_fails_is_escalated_and_the_next_one_answered():
    before = Conversation(state="default", context={"turns": 1})
    (turn,) = next_turns(poisoned(), before, [message("a", "яд"), message("b", "привет")])
    assert (turn.outcome, turn.reply.text, turn.escalation.code) == ("failed", "Оператор ответит.", "engine_failed")
    assert turn.next.context == {"turns": 0}
    assert turn.log.meta["error"] == "LoopIterationLimitError"
    assert next_turns(poisoned(), Conversation(), [message("b", "привет")])[0].outcome == "matched"


def test_a_chat_that_was_taken_three_times_without_a_commit_ends_its_first_update():
    updates = [message("a", "доставка"), message("b", "оплата")]
    assert [turn.outcome for turn in next_turns(shop(), Conversation(), updates, takes=2)] == ["matched"]
    (turn,) = next_turns(shop(), Conversation(), updates, takes=3)
    assert (turn.key, turn.outcome, turn.log.meta["error"]) == ("a", "failed", "taken_too_often")


def test_a_failure_without_words_to_say_is_still_an_end():
    ruleset = rules({"rule_id": "bad", "pattern": {"keywords": ["яд"]}, "response_template": "{{ x"})
    (turn,) = next_turns(ruleset, Conversation(), [message("a", "яд")])
    assert (turn.outcome, turn.reply, turn.plan) == ("failed", None, None)
