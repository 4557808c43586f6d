"""Expiry, late updates, hours, starts and handoffs: everything that depends on a time. The engine has no clock."""

from datetime import UTC, datetime, timedelta

import pytest
from autopost_bot.engine.hours import in_words, opens_at
from bot.support.shop_chat import NOON, Chat, said, shop_with

TTL = timedelta(minutes=30)
HOURS = {"mon": [["09:00", "21:00"]], "fri": [["22:00", "02:00"]], "holidays": ["2026-11-23"]}


@pytest.mark.parametrize(
    ("waited", "outcome"),
    [
        (TTL - timedelta(milliseconds=1), "captured"),
        (TTL, "captured"),
        (TTL + timedelta(milliseconds=1), "clarified"),
    ],
)
def test_a_scenario_expires_after_its_time_and_not_at_it(waited, outcome):
    chat = Chat()
    chat.say("возврат")
    chat.at += waited
    turn = chat.say("12345")
    assert turn.outcome == outcome
    assert turn.log.meta.get("expired", False) is (outcome == "clarified")


def test_each_turn_renews_the_time():
    chat = Chat()
    chat.say("возврат")
    chat.wait(minutes=29).say("?")
    chat.wait(minutes=29)
    assert chat.say("12345").outcome == "captured"


def test_an_answer_in_time_is_captured_however_late_it_is_handled():
    chat = Chat()
    chat.say("возврат")
    came = chat.at + timedelta(minutes=1)
    chat.wait(minutes=31)
    assert chat.say("12345", at=came).outcome == "captured"


def test_the_notice_of_an_expired_scenario_goes_before_the_answer_in_one_message():
    chat = Chat(shop_with(settings={"texts": {"expired": "Прошлый разговор закончился."}}))
    chat.say("возврат")
    chat.wait(minutes=31)
    assert said(chat.say("доставка")).startswith("Прошлый разговор закончился.\n\nДоставляем")


def late(chat, text, seconds=31, **fields):
    written = int((chat.at - timedelta(seconds=seconds)).timestamp() * 1000)
    return chat.get(**{"kind": "message", "text": text, "provider_ms": written, **fields})


@pytest.mark.parametrize("text", ["возврат", "доставка", "12345", "отмена", "что-то ещё"])
def test_a_late_update_changes_nothing_in_a_running_scenario(text):
    chat = Chat()
    chat.wait(minutes=2).say("возврат")
    before = chat.conversation

    turn = late(chat, text)

    assert chat.conversation == before
    assert turn.next is None
    assert turn.log.meta["late"] is True


def test_a_late_question_is_answered_and_a_late_unknown_text_is_not():
    chat = Chat()
    chat.wait(minutes=2).say("оплата")
    assert late(chat, "доставка").outcome == "late"
    turn = late(chat, "что-то ещё")
    assert (turn.outcome, turn.reply) == ("silent", None)


def test_half_a_minute_is_not_late():
    chat = Chat()
    chat.wait(minutes=2).say("оплата")
    assert late(chat, "возврат", seconds=30).outcome == "matched"


def test_a_late_start_neither_greets_nor_resets():
    chat = Chat()
    chat.wait(minutes=2).say("возврат")
    turn = late(chat, "", kind="start")
    assert (turn.outcome, chat.conversation.state) == ("silent", "returns_order")


def test_a_start_greets_and_begins_anew():
    chat = Chat()
    chat.say("возврат")
    turn = chat.start()
    assert (turn.outcome, chat.conversation.state) == ("greeted", "default")
    assert "бот магазина «Север»" in said(turn)


def test_a_second_start_within_ten_seconds_is_silent():
    chat = Chat()
    outcomes = [chat.start().outcome, chat.wait(seconds=10).start().outcome, chat.wait(seconds=1).start().outcome]
    assert outcomes == ["greeted", "silent", "greeted"]


def handed_over():
    chat = Chat(shop_with(settings={"escalation": {"mode": "handoff", "hold": "12 hours"}}))
    chat.say("абракадабра")
    assert chat.say("тарабарщина").outcome == "escalated"
    return chat


def test_after_a_handoff_the_bot_is_silent_until_the_hold_ends():
    chat = handed_over()
    assert chat.conversation.state == "operator"
    assert chat.wait(hours=11).say("доставка").outcome == "silent"
    assert chat.say("", attachments=("image",)).outcome == "silent"
    assert chat.wait(hours=2).say("доставка").outcome == "matched"


def test_a_cancel_word_brings_the_bot_back():
    chat = handed_over()
    assert chat.say("меню").outcome == "cancelled"
    assert chat.say("доставка").outcome == "matched"


def test_outside_the_hours_an_escalation_says_when_somebody_is_there():
    chat = Chat(at=datetime(2026, 11, 18, 20, tzinfo=UTC))
    chat.say("абракадабра")
    assert "ответим завтра в 9:00" in said(chat.say("тарабарщина"))


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        ("2026-11-16T05:59:59+00:00", "2026-11-16T06:00:00+00:00"),
        ("2026-11-16T06:00:00+00:00", "2026-11-16T06:00:00+00:00"),
        ("2026-11-16T17:59:59+00:00", "2026-11-16T17:59:59+00:00"),
        ("2026-11-16T18:00:00+00:00", "2026-11-20T19:00:00+00:00"),
        (
            "2026-11-20T22:30:00+00:00",
            "2026-11-20T22:30:00+00:00",
        ),  # after midnight of a span that began the day before
        ("2026-11-20T23:00:00+00:00", "2026-11-27T19:00:00+00:00"),  # Monday is a holiday
    ],
)
def test_hours_open_at(at, expected):
    assert opens_at(HOURS, "Europe/Moscow", datetime.fromisoformat(at)) == datetime.fromisoformat(expected)


def test_without_hours_it_is_always_open_and_with_no_span_never():
    assert opens_at(None, "Europe/Moscow", NOON) == NOON
    assert opens_at({}, "Europe/Moscow", NOON) is None


@pytest.mark.parametrize(
    ("days", "words"),
    [(0, "сегодня в 12:00"), (1, "завтра в 12:00"), (2, "в пятницу в 12:00"), (8, "26.11 в 12:00")],
)
def test_an_opening_in_words(days, words):
    assert in_words(NOON + timedelta(days=days), "Europe/Moscow", NOON) == words
