"""Decide the turn of one update. The steps are in ``STEPS``; the first that returns a turn ends it.

decide(ruleset, conversation, update) → turn, without its plan
"""

import base64
from collections.abc import Callable
from datetime import timedelta
from hashlib import sha256
from typing import Any, Literal

import msgspec
from autopost_contracts.payload import Button
from msgspec.structs import replace

from autopost_bot.engine.match import Hit, Match, match
from autopost_bot.engine.normal_form import normal_form
from autopost_bot.engine.rules import Rule
from autopost_bot.engine.ruleset import Ruleset, buttons_of
from autopost_bot.engine.talk import ButtonRows, Talk, rule_rows
from autopost_bot.engine.turn import (
    DEFAULT_STATE,
    OPERATOR_STATE,
    Conversation,
    Escalation,
    NextConversation,
    Outcome,
    Reply,
    Turn,
    Update,
    written_ms,
)

SECOND_START = 10_000
"""Milliseconds. Clients send two starts in a row; the second is not greeted again."""
TOKEN_LENGTH = 10
LONGEST_NUMBER = 9
"""Digits, in the payload of a button."""

Step = Callable[[Talk], Talk | Turn]
"""Ends with a turn, or passes on what is known now."""


def decide(ruleset: Ruleset, conversation: Conversation, update: Update) -> Turn:
    talk = Talk(ruleset=ruleset, update=update, before=conversation, now=conversation, meta={})
    for step in STEPS:
        known = step(talk)
        if isinstance(known, Turn):
            return known
        talk = known
    return _no_match(talk)


def _flood(talk: Talk) -> Talk | Turn:
    """Nothing changes but that the customer is told. While an operator has the chat, people may write as they like."""
    if not talk.update.flooded:
        return talk
    if _operator_has_it(talk):
        return talk.turn("silent")
    notice = talk.say(talk.ruleset.settings.texts.flood)
    is_press = talk.update.kind == "press"
    return talk.turn("flooded", notice, notification=notice.text if notice and is_press else None)


def _late(talk: Talk) -> Talk | Turn:
    """Older than what was handled already: answered by global rules, and nothing changes."""
    newest, written = talk.before.newest_ms, talk.update.provider_ms
    late_after = talk.ruleset.settings.late_after / timedelta(milliseconds=1)
    if newest is None or written is None or newest - written <= late_after:
        return talk
    talk.meta["late"] = True
    return _late_answer(talk) or talk.turn("silent")


def _late_answer(talk: Talk) -> Turn | None:
    if talk.update.kind != "message" or not normal_form(talk.update.text) or _operator_has_it(talk):
        return None
    found = match(talk.ruleset, None, talk.update.text)
    if not found.hits:
        return None
    _note(talk, found)
    rule = found.hits[0].rule
    talk = talk if talk.before.state != DEFAULT_STATE and not _is_over(talk) else _anew(talk)
    return talk.turn("late", _with_prompt(talk, talk.say(rule.response_template)), rule=rule)


def _start(talk: Talk) -> Talk | Turn:
    if talk.update.kind != "start":
        return talk
    when = written_ms(talk.update)
    if abs(when - talk.before.context.get("greeted", -SECOND_START * 2)) <= SECOND_START:
        return talk.turn("silent")
    talk = _anew(talk)
    greeting = talk.say(talk.ruleset.settings.texts.greeting, talk.menu())
    return talk.turn("greeted", greeting, next=_reset(greeted=when))


def _operator(talk: Talk) -> Talk | Turn:
    """The bot is silent while an operator has the chat, unless the customer wants out."""
    return talk.turn("silent") if _operator_has_it(talk) and not _is_cancel(talk) else talk


def _operator_has_it(talk: Talk) -> bool:
    return talk.before.state == OPERATOR_STATE and not _is_over(talk)


def _expired(talk: Talk) -> Talk | Turn:
    """Judged by when the customer's update came, so that an outage of ours eats no answer."""
    if not _is_over(talk):
        return talk
    talk.meta["expired"] = True
    return _anew(talk)


def _is_over(talk: Talk) -> bool:
    return talk.before.expires_at is not None and talk.before.expires_at < talk.update.at


def _unknown_state(talk: Talk) -> Talk | Turn:
    """No enabled rule has it, as after a release without it."""
    if talk.now.state in (DEFAULT_STATE, OPERATOR_STATE) or talk.now.state in talk.ruleset.states:
        return talk
    talk.meta["state_unknown"] = True
    return _anew(talk)


def _cancel(talk: Talk) -> Talk | Turn:
    if not _is_cancel(talk):
        return talk
    reply = _anew(talk).say(talk.ruleset.settings.texts.cancelled, talk.menu())
    return talk.turn("cancelled", reply, next=_reset())


def _is_cancel(talk: Talk) -> bool:
    return talk.update.kind == "message" and normal_form(talk.update.text) in talk.ruleset.cancel_words


def _press(talk: Talk) -> Talk | Turn:
    """A press on a button of the current question says the text of the button."""
    if talk.update.kind != "press":
        return talk
    match talk.update.payload.rsplit(".", 3):
        case [rule_id, version, question, number] if _is_number(version) and _is_number(number):
            text = _pressed(talk, rule_id, int(version), question, int(number))
        case _:
            return talk.turn("ignored")
    if text is None:
        notice = talk.ruleset.settings.texts.stale_button
        return talk.turn("stale", notification=notice and talk.render(notice))
    return replace(talk, update=replace(talk.update, text=text))


def _is_number(written: str) -> bool:
    return len(written) <= LONGEST_NUMBER and written.isdecimal()


def _pressed(talk: Talk, rule_id: str, version: int, question: str, number: int) -> str | None:
    rule = talk.ruleset.by_id.get(rule_id)
    if rule is None or rule.version != version or question != talk.now.context.get("token"):
        return None
    buttons = [button for row in rule.buttons for button in buttons_of(row)]
    return buttons[number].text if number < len(buttons) and buttons[number].callback else None


def _count(talk: Talk) -> Talk | Turn:
    """The turn guard: a scenario that goes on for too long is handed to people."""
    turns = int(talk.now.context.get("turns", 0)) + 1
    if talk.in_scenario and turns >= _max_turns(talk):
        return _escalated(talk, "turn_guard")
    return talk.with_context(turns=turns)


def _max_turns(talk: Talk) -> int:
    opened_by = talk.now.context.get("opened_by") or {}
    return int(opened_by.get("max_turns", talk.ruleset.settings.max_turns))


def _answer(talk: Talk) -> Talk | Turn:
    attachments = talk.update.attachments
    found = match(talk.ruleset, talk.now.state, talk.update.text, attachments)
    if attachments and not normal_form(talk.update.text):
        found = Match(tuple(hit for hit in found.hits if hit.rule.accept and hit.rule.accept.attachments))
        if not found.hits:
            return _attachment(talk)
    if found.hits:
        _note(talk, found)
        return _matched(talk, found)
    return _refused(talk, found.refused[0]) if found.refused else talk


def _attachment(talk: Talk) -> Turn:
    """Without words. It counts in a scenario, like every message there."""
    reply = talk.say(talk.ruleset.settings.texts.attachment, talk.prompt_buttons)
    return talk.turn("attachment", reply, next=_stay(talk) if talk.in_scenario else None)


def _matched(talk: Talk, found: Match) -> Turn:
    hit = found.hits[0]
    rule = hit.rule
    if rule.capture is not None:
        talk = talk.with_context(**{rule.capture: hit.value})
    if rule.state is None and rule.next_state is None and talk.in_scenario:
        reply = _with_prompt(talk, talk.say(rule.response_template, rule_rows(rule, None)))
        return talk.turn("digressed", reply, next=_stay(talk), rule=rule)
    token = _token(talk) if any(button.callback for row in rule.buttons for button in buttons_of(row)) else None
    reply = talk.say(rule.response_template, (*rule_rows(rule, token), *_other_intents(talk, found)))
    outcome: Outcome = "matched" if rule.capture is None else "captured"
    return talk.turn(outcome, reply, next=_after(talk, rule, reply, token), rule=rule)


def _after(talk: Talk, rule: Rule, reply: Reply | None, token: str | None) -> NextConversation:
    if rule.next_state == DEFAULT_STATE or (rule.next_state is None and not talk.in_scenario):
        return _reset()
    if rule.next_state is None:
        return _stay(talk)
    asked = _asked(reply, token)
    if rule.state is None or not talk.in_scenario:
        opened_by = {"rule_id": rule.rule_id, "version": rule.version, "max_turns": rule.max_turns}
        own = {rule.capture: talk.now.context[rule.capture]} if rule.capture else {}
        return _wait(talk, rule.next_state, {**own, "turns": 1, "opened_by": opened_by, **asked})
    kept = {name: value for name, value in talk.now.context.items() if name not in ("prompt", "buttons", "token")}
    return _wait(talk, rule.next_state, {**kept, **asked})


def _asked(reply: Reply | None, token: str | None) -> dict[str, Any]:
    """What is asked again after a question in between."""
    if reply is None:
        return {}
    asked: dict[str, Any] = {"prompt": reply.text}
    if reply.buttons:
        asked["buttons"] = msgspec.to_builtins(reply.buttons)
    return asked if token is None else {**asked, "token": token}


def _token(talk: Talk) -> str:
    """Names one question: the buttons under it work until the conversation moves on."""
    digest = sha256(f"{talk.update.key} {talk.now.state}".encode()).digest()
    return base64.b32encode(digest).decode().lower()[:TOKEN_LENGTH]


def _with_prompt(talk: Talk, answer: Reply | None) -> Reply | None:
    """The answer, and under it the question that is still open."""
    if talk.prompt is None:
        return answer
    if answer is None:
        return Reply(text=talk.prompt, buttons=talk.prompt_buttons)
    return Reply(text=f"{answer.text}\n\n{talk.prompt}", buttons=talk.prompt_buttons or answer.buttons)


def _other_intents(talk: Talk, found: Match) -> ButtonRows:
    """In the default state: buttons of the menu for what the customer asked beside the answered question."""
    if talk.in_scenario:
        return ()
    winner = found.hits[0].rule.intent
    others = {hit.rule.intent: hit.rule.rule_id for hit in reversed(found.hits) if hit.rule.intent != winner}
    shown = [talk.ruleset.say_buttons[rule_id] for rule_id in others.values() if rule_id in talk.ruleset.say_buttons]
    return tuple((Button(text, kind="say"),) for text in sorted(shown))


def _refused(talk: Talk, hit: Hit) -> Turn:
    """The words for a wrong value, instead of the question."""
    body = hit.rule.invalid_template or talk.ruleset.settings.texts.invalid
    reply = talk.say(body, talk.prompt_buttons) if body else _with_prompt(talk, None)
    talk.meta["refused_by"] = hit.rule.rule_id
    return talk.turn("invalid", reply, next=_stay(talk))


def _no_match(talk: Talk) -> Turn:
    if talk.in_scenario:
        return talk.turn("invalid", _with_prompt(talk, None), next=_stay(talk))
    settings = talk.ruleset.settings
    if talk.now.context["turns"] >= settings.fallback.escalate_after:
        return _escalated(talk, "unmatched")
    reply = talk.say(settings.texts.clarify, talk.menu())
    return talk.turn("clarified", reply, next=_wait(talk, DEFAULT_STATE, {"turns": talk.now.context["turns"]}))


def _escalated(talk: Talk, code: Literal["turn_guard", "unmatched"]) -> Turn:
    escalation = talk.ruleset.settings.escalation
    handed = NextConversation(state=OPERATOR_STATE, context={"turns": 0}, expires_in=escalation.hold)
    return talk.turn(
        "escalated",
        escalate_reply(talk),
        next=handed if escalation.mode == "handoff" else _reset(),
        escalation=Escalation(code),
    )


def escalate_reply(talk: Talk) -> Reply | None:
    texts = talk.ruleset.settings.texts
    return talk.say(texts.escalate if texts.escalate_closed is None or talk.is_open() else texts.escalate_closed)


def _note(talk: Talk, found: Match) -> None:
    talk.meta["matched_by"] = found.by
    talk.meta["keywords"] = list(found.hits[0].keywords)


def _anew(talk: Talk) -> Talk:
    return replace(talk, now=Conversation(newest_ms=talk.before.newest_ms))


def _reset(**context: Any) -> NextConversation:
    return NextConversation(state=DEFAULT_STATE, context={"turns": 0, **context})


def _stay(talk: Talk) -> NextConversation:
    return _wait(talk, talk.now.state, talk.now.context)


def _wait(talk: Talk, state: str, context: dict[str, Any]) -> NextConversation:
    return NextConversation(state=state, context=context, expires_in=talk.ruleset.settings.state_ttl)


STEPS: tuple[Step, ...] = (
    _flood,
    _late,
    _start,
    _operator,
    _expired,
    _unknown_state,
    _cancel,
    _press,
    _count,
    _answer,
)
