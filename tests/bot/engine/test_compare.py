from datetime import UTC, datetime, timedelta

from autopost_bot.engine.compare import Observed, compare
from autopost_bot.engine.turn import Update
from bot.support.shop_chat import rules

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
ASK = {"rule_id": "size", "pattern": {"keywords": ["размер"]}, "next_state": "size", "response_template": "Какой?"}


def asking(*options: str):
    pattern = {"mode": "choice", "options": list(options)}
    take = {"rule_id": "take", "state": "size", "capture": "size", "pattern": pattern, "next_state": "default"}
    return rules(ASK, take)


def said(number: int, text: str) -> Observed:
    at = NOON + timedelta(seconds=number)
    update = Update(key=f"m{number}", kind="message", at=at, text=text)
    return Observed(chat="7", update=update, logged_at=at, outcome="matched", rule_id=None, state_after="default")


def test_an_answer_that_is_refused_now_is_worse():
    both = compare(asking("S", "M"), asking("S"), [said(1, "размер"), said(2, "M")])
    assert [(one.new.outcome, one.change) for one in both] == [
        ("matched", "same"),
        ("invalid", "answered_to_fallback"),
    ]
