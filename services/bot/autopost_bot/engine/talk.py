"""One update in its conversation, while its turn is being decided: what is known, and how texts are rendered."""

from datetime import datetime
from typing import Any

import msgspec
from autopost_contracts.payload import Button
from msgspec import Struct
from msgspec.structs import replace

from autopost_bot.engine.hours import in_words, opens_at
from autopost_bot.engine.rules import ButtonRow, Rule, RuleButton
from autopost_bot.engine.ruleset import Ruleset, buttons_of
from autopost_bot.engine.turn import (
    DEFAULT_STATE,
    OPERATOR_STATE,
    Conversation,
    Escalation,
    LogLine,
    NextConversation,
    Outcome,
    Reply,
    Turn,
    Update,
)

ButtonRows = tuple[tuple[Button, ...], ...]

OWN_NAMES = frozenset({"turns", "opened_by", "prompt", "buttons", "token", "greeted"})
"""Of a context; everything else in it was captured."""
GIVEN_NAMES = frozenset({"text", "shop", "open", "opens_at"})
"""What every template may use beside captured values."""
PREVIEW = 200
LONGEST_LOGGED = 4000


class Talk(Struct, frozen=True, kw_only=True):
    ruleset: Ruleset
    update: Update
    before: Conversation
    """As it was stored."""
    now: Conversation
    """Without what has expired or is unknown; the turn of this update is counted."""
    meta: dict[str, Any]
    """What the log line says; filled while the turn is decided."""
    is_late: bool = False

    @property
    def in_scenario(self) -> bool:
        return self.now.state != DEFAULT_STATE

    @property
    def captured(self) -> dict[str, Any]:
        return {name: value for name, value in self.now.context.items() if name not in OWN_NAMES}

    @property
    def prompt(self) -> str | None:
        prompt: str | None = self.now.context.get("prompt")
        return prompt

    @property
    def prompt_buttons(self) -> ButtonRows:
        return msgspec.convert(self.now.context.get("buttons", []), ButtonRows)

    def with_context(self, **changed: Any) -> "Talk":
        return replace(self, now=replace(self.now, context={**self.now.context, **changed}))

    def is_open(self) -> bool:
        return self._opens_at() == self.update.at

    def _opens_at(self) -> datetime | None:
        settings = self.ruleset.settings
        return opens_at(settings.hours, settings.timezone, self.update.at)

    def render(self, body: str) -> str:
        """A variable that is not there is empty, and the log line names it."""
        template = self.ruleset.template(body)
        if template is None:
            return body.strip()
        values = self.captured | self._given(template.names)
        if missing := sorted(template.names - values.keys()):
            self.meta["missing"] = missing
        return str(template.render(values)).strip()

    def _given(self, names: frozenset[str]) -> dict[str, Any]:
        settings = self.ruleset.settings
        given: dict[str, Any] = {"text": self.update.text, "shop": settings.texts.shop}
        if names & {"open", "opens_at"}:
            opening = self._opens_at()
            given["open"] = opening == self.update.at
            given["opens_at"] = in_words(opening, settings.timezone, self.update.at)
        return given

    def say(self, body: str | None, buttons: ButtonRows = ()) -> Reply | None:
        if body is None or not (text := self.render(body)):
            return None
        return Reply(text=text, buttons=buttons)

    def menu(self) -> ButtonRows:
        return say_rows(self.ruleset.settings.menu)

    def turn(
        self,
        outcome: Outcome,
        reply: Reply | None = None,
        *,
        next: NextConversation | None = None,
        rule: Rule | None = None,
        notification: str | None = None,
        escalation: Escalation | None = None,
    ) -> Turn:
        reply = self._after_expiry(reply)
        return Turn(
            key=self.update.key,
            outcome=outcome,
            reply=reply,
            next=next,
            notification=notification,
            escalation=escalation,
            log=LogLine(
                message_text=_logged(self.update),
                matched_rule_id=rule.rule_id if rule else None,
                rule_version=rule.version if rule else None,
                state_before=self.before.state,
                state_after=next.state if next else self.before.state,
                response_preview=reply.text[:PREVIEW] if reply else None,
                meta={"outcome": outcome, "ruleset": self.ruleset.hash, **self.meta},
            ),
        )

    def _after_expiry(self, reply: Reply | None) -> Reply | None:
        """The notice that the scenario has expired, if there is one, goes before the answer."""
        notice = self.ruleset.settings.texts.expired
        if reply is None or notice is None or not self.meta.get("expired") or self.before.state == OPERATOR_STATE:
            return reply
        return replace(reply, text=f"{self.render(notice)}\n\n{reply.text}")


def say_rows(rows: tuple[ButtonRow, ...]) -> ButtonRows:
    """Buttons that stand on their own: of the menu."""
    return tuple(tuple(map(_plain_button, buttons_of(row))) for row in rows)


def rule_rows(rule: Rule, token: str | None) -> ButtonRows:
    """The buttons of a rule. A payload names the rule, its version, the question and the button."""
    numbers = iter(range(sum(map(len, rule.buttons))))
    return tuple(
        tuple(_rule_button(rule, token, next(numbers), button) for button in buttons_of(row)) for row in rule.buttons
    )


def _rule_button(rule: Rule, token: str | None, number: int, button: RuleButton) -> Button:
    if not button.callback:
        return _plain_button(button)
    payload = f"{rule.rule_id}.{rule.version}.{token or '-'}.{number}"
    return Button(button.text, payload=payload, kind="callback")


def _plain_button(button: RuleButton) -> Button:
    return Button(button.text, button.url) if button.url else Button(button.text, kind="say")


def _logged(update: Update) -> str:
    return update.text[:LONGEST_LOGGED] or " ".join(f"[{kind}]" for kind in update.attachments)
