"""Run conversations that are written down, with a clock of their own.

- name: a return with a wrong number
  turns:
    - {say: "Хочу вернуть товар", rule: returns, state: returns_order}
    - {say: "не помню", outcome: invalid, reply_contains: "номера заказа"}
    - {wait: 31m}
    - {say: "брак", outcome: clarified, state: default}
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec import Struct

from autopost_bot.engine.intervals import read_interval
from autopost_bot.engine.next_turns import next_turns
from autopost_bot.engine.replay import apply
from autopost_bot.engine.ruleset import Ruleset
from autopost_bot.engine.turn import Conversation, Turn, Update

DEEDS = ("say", "press", "attach", "start", "wait")
EXPECTED = (
    "rule",
    "state",
    "outcome",
    "context",
    "reply",
    "reply_contains",
    "reply_ends",
    "buttons",
    "notification",
)
BEGIN = datetime(2026, 3, 3, 9, tzinfo=UTC)
"""A Tuesday, noon in Moscow, if the conversation names no other ``at``."""


class InvalidConversation(Exception):  # noqa: N818  named for what happened
    """It is not written as it should be; the message names the place."""


class Failure(Struct, frozen=True):
    """An expectation that was not met."""

    conversation: str
    turn: int
    field: str
    expected: Any
    found: Any


class Dialog:
    """A customer and the bot."""

    def __init__(self, ruleset: Ruleset, at: datetime = BEGIN) -> None:
        self.ruleset = ruleset
        self.conversation = Conversation()
        self.at = at
        self.last: Turn | None = None
        """The last turn with a reply."""
        self.last_update: Update | None = None
        self.last_before: Conversation | None = None
        self._count = 0

    def wait(self, time: timedelta) -> None:
        try:
            self.at += time
        except OverflowError:
            raise InvalidConversation(f"wait: {time.days} days lead past the last year there is") from None

    def say(self, text: str, attachments: tuple[str, ...] = ()) -> Turn:
        return self._get(kind="message", text=text, attachments=attachments)

    def start(self) -> Turn:
        return self._get(kind="start")

    def press(self, text: str) -> Turn:
        """The button with this text under the last reply; one that says its text does so."""
        rows = self.last.reply.buttons if self.last and self.last.reply else ()
        for button in (button for row in rows for button in row):
            if button.text == text:
                return self.say(text) if button.kind == "say" else self.press_payload(button.payload)
        raise InvalidConversation(f"no button {text!r} under the last reply")

    def press_payload(self, payload: str) -> Turn:
        return self._get(kind="press", payload=payload, callback_id="callback")

    def _get(self, **given: Any) -> Turn:
        self._count += 1
        self.at += timedelta(seconds=1)
        written = int(self.at.timestamp() * 1000)
        update = Update(**{"key": f"m{self._count}", "at": self.at, "provider_ms": written, **given})
        self.last_update, self.last_before = update, self.conversation
        (turn,) = next_turns(self.ruleset, self.conversation, [update])
        self.conversation = apply(self.conversation, update, turn, self.at)
        if turn.reply is not None:
            self.last = turn
        return turn


def run_conversations(ruleset: Ruleset, conversations: Sequence[Any]) -> Iterator[Failure]:
    for number, conversation in enumerate(conversations, 1):
        if not isinstance(conversation, Mapping) or not isinstance(conversation.get("turns"), list):
            raise InvalidConversation(f"conversation {number}: must have a name and `turns:`, a list")
        name = str(conversation.get("name") or f"conversation {number}")
        yield from _run(ruleset, name, conversation)


def run_phrases(ruleset: Ruleset, phrases: Mapping[str, Sequence[str]]) -> Iterator[Failure]:
    """Each text alone, by the intent that must answer it; ``none``: no intent of the file may."""
    for intent, texts in phrases.items():
        for number, text in enumerate(texts, 1):
            rule = Dialog(ruleset).say(str(text)).log.matched_rule_id
            found = ruleset.by_id[rule].intent if rule else "none"
            if found != intent and not (intent == "none" and found not in phrases):
                yield Failure(intent, number, str(text), intent, found)


def _run(ruleset: Ruleset, name: str, conversation: Mapping[str, Any]) -> Iterator[Failure]:
    dialog = Dialog(ruleset, _begin(name, conversation.get("at") or BEGIN))
    number = 0
    try:
        for number, step in enumerate(conversation["turns"], 1):
            turn = _step(dialog, step)
            expected = {field: value for field, value in step.items() if field not in DEEDS}
            for field, value in expected.items():
                if turn is None or not _holds(field, value, found := _found(field, turn, dialog)):
                    yield Failure(name, number, field, value, None if turn is None else found)
    except (InvalidConversation, ValueError, TypeError, OverflowError) as exc:
        raise InvalidConversation(f"{name!r}, turn {number}: {exc}") from None


def _begin(name: str, at: Any) -> datetime:
    """Without a zone it is UTC."""
    try:
        read = datetime.fromisoformat(at) if isinstance(at, str) else at
    except ValueError:
        read = None
    if not isinstance(read, datetime):
        raise InvalidConversation(
            f"{name!r}: at: {str(at)[:40]!r} is no moment; write one like 2026-03-03T09:00:00+03:00"
        )
    return read if read.tzinfo else read.replace(tzinfo=UTC)


def _step(dialog: Dialog, step: Any) -> Turn | None:
    deeds = [deed for deed in DEEDS if deed in step] if isinstance(step, Mapping) else []
    if not deeds or (len(deeds) > 1 and deeds != ["say", "attach"]):
        raise InvalidConversation(f"must have one of {', '.join(DEEDS)}")
    unknown = sorted(step.keys() - {*DEEDS, *EXPECTED})
    if unknown:
        raise InvalidConversation(f"unknown field {unknown[0]!r}; known are {', '.join(EXPECTED)}")
    if not isinstance(step.get("context", {}), Mapping):
        raise InvalidConversation("context: must be a mapping")
    match deeds[0]:
        case "wait":
            dialog.wait(read_interval(step["wait"]))
            return None
        case "start":
            return dialog.start()
        case "press":
            return dialog.press(str(step["press"]))
        case _:
            attached = (str(step["attach"]),) if "attach" in step else ()
            return dialog.say(str(step.get("say", "")), attached)


def _found(field: str, turn: Turn, dialog: Dialog) -> Any:
    match field:
        case "rule":
            return turn.log.matched_rule_id
        case "state":
            return dialog.conversation.state
        case "outcome":
            return turn.outcome
        case "context":
            return dialog.conversation.context
        case "notification":
            return turn.notification
        case "buttons":
            return [button.text for row in (turn.reply.buttons if turn.reply else ()) for button in row]
        case _:
            return turn.reply.text if turn.reply else None


def _holds(field: str, expected: Any, found: Any) -> bool:
    match field:
        case "reply_contains":
            return found is not None and str(expected) in found
        case "reply_ends":
            return found is not None and found.endswith(str(expected))
        case "context":
            return all(found.get(name) == value for name, value in expected.items())
        case _:
            return bool(found == expected)
