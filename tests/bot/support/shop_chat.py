"""A chat with the shop bot as the engine sees it: no service, no database, no clock."""

from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from autopost_bot.engine.next_turns import next_turns
from autopost_bot.engine.replay import apply
from autopost_bot.engine.ruleset import Ruleset, load_ruleset
from autopost_bot.engine.turn import Conversation, Turn, Update

EXAMPLES = Path(__file__).parents[3] / "examples" / "bot"
NOON = datetime(2026, 11, 18, 9, tzinfo=UTC)
"""In Moscow; a Wednesday."""


@cache
def example_rules() -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load((EXAMPLES / "rules.yaml").read_text())
    return document


@cache
def shop() -> Ruleset:
    """The rules of the seed."""
    return load_ruleset(example_rules()["rules"], example_rules()["settings"])


def shop_with(*, settings: dict[str, Any] | None = None, without: tuple[str, ...] = (), **changed: Any) -> Ruleset:
    """The rules of the seed with other settings, without some of them, or with some fields changed: ``returns={…}``."""
    rules = [rule | changed.get(rule["rule_id"], {}) for rule in example_rules()["rules"]]
    kept = [rule for rule in rules if rule["rule_id"] not in without]
    return load_ruleset(kept, {**example_rules()["settings"], **(settings or {})})


def rules(*given: dict[str, Any], **settings: Any) -> Ruleset:
    filled = [{"intent": "test", "response_template": rule["rule_id"], **rule} for rule in given]
    return load_ruleset(filled, settings)


class Chat:
    def __init__(self, ruleset: Ruleset | None = None, at: datetime = NOON) -> None:
        self.ruleset = ruleset or shop()
        self.conversation = Conversation()
        self.at = at
        self.count = 0

    def wait(self, **time: float) -> "Chat":
        self.at += timedelta(**time)
        return self

    def say(self, text: str = "", **fields: Any) -> Turn:
        return self.get(kind="message", text=text, **fields)

    def press(self, payload: str) -> Turn:
        return self.get(kind="press", payload=payload, callback_id="c1")

    def start(self, **fields: Any) -> Turn:
        return self.get(kind="start", **fields)

    def get(self, **fields: Any) -> Turn:
        self.count += 1
        written = int(self.at.timestamp() * 1000)
        update = Update(**{"key": f"m{self.count}", "at": self.at, "provider_ms": written, **fields})
        (turn,) = next_turns(self.ruleset, self.conversation, [update])
        self.conversation = apply(self.conversation, update, turn, self.at)
        return turn


def said(turn: Turn) -> str:
    return turn.reply.text if turn.reply else ""
