"""Random conversations: the engine is a function, ends every update, and its history can be folded again."""

import random
from datetime import timedelta

import msgspec
from autopost_bot.engine.next_turns import next_turns
from autopost_bot.engine.replay import Fold, Handled, apply, replay, rule_name
from autopost_bot.engine.ruleset import load_ruleset
from autopost_bot.engine.turn import Conversation, Update
from bot.support.shop_chat import NOON, example_rules, shop, shop_with
from harness.full import FULL

CONVERSATIONS = 10_000 if FULL else 100
TEXTS = (
    *("Хочу вернуть товар", "12345", "заказ №777", "брак", "не помню", "отмена", "меню", "доставка?", "как оплатить"),
    *("гарантия", "ваш телефон?", "привет", "спасибо", "абракадабра", "👍", "{{ reason }}", "<b>", "", "ljcnfdrf"),
    *("дотсавка", "возврат и доставка", "ы" * 300, "х", "\x00", "ДОСТАВКА", "не подошло"),
)
PAYLOADS = ("", "x", "returns.1.aaaaaaaaaa.0", "a.1.b.2")


def updates(seed):
    chance = random.Random(seed)
    at = NOON
    for n in range(chance.randint(1, 12)):
        at += timedelta(seconds=chance.choice((0, 1, 5, 40, 600, 1900)))
        written = int((at - timedelta(seconds=chance.choice((0, 0, 0, 0, 20, 45)))).timestamp() * 1000)
        kind = chance.choices(("message", "press", "start"), (12, 1, 1))[0]
        yield Update(
            key=f"m{n}",
            kind=kind,
            at=at,
            provider_ms=chance.choice((written, written, written, None)),
            text=chance.choice(TEXTS) if kind == "message" else "",
            attachments=chance.choice(((), (), (), ("image",))) if kind == "message" else (),
            payload=chance.choice(PAYLOADS) if kind == "press" else "",
        )


def handled(ruleset, given):
    """The turns as the service makes them: the next ones are decided when the last ones are committed."""
    conversation, left = Conversation(), list(given)
    while left:
        turns = next_turns(ruleset, conversation, left)
        for update, turn in zip(left, turns, strict=False):
            committed = update.at + timedelta(milliseconds=30)
            conversation = apply(conversation, update, turn, committed)
            yield update, turn, committed
        left = left[len(turns) :]


def as_logged(update, turn, committed):
    meta = turn.log.meta
    return Handled(
        update=update,
        logged_at=committed,
        ruleset=meta["ruleset"],
        outcome=turn.outcome,
        error=meta.get("error"),
        gathered=tuple(meta.get("gathered", ())),
        late=bool(meta.get("late")),
        expired=bool(meta.get("expired")),
        rule=rule_name(turn.log.matched_rule_id, turn.log.rule_version),
        state_before=turn.log.state_before,
        state_after=turn.log.state_after,
        preview=turn.log.response_preview,
        response_hash=turn.response_hash,
    )


def test_the_same_conversation_makes_the_same_turns_byte_for_byte():
    again = load_ruleset(reversed(example_rules()["rules"]), example_rules()["settings"])
    for seed in range(CONVERSATIONS):
        first, second = (
            msgspec.json.encode([turn for _, turn, _ in handled(ruleset, updates(seed))], order="sorted")
            for ruleset in (shop(), again)
        )
        assert first == second, seed


def test_every_update_ends_with_one_turn_and_a_plan_exactly_if_it_is_answered():
    for seed in range(CONVERSATIONS):
        given = list(updates(seed))
        turns = [turn for _, turn, _ in handled(shop(), given)]
        assert [turn.key for turn in turns] == [update.key for update in given]
        for turn in turns:
            assert (turn.reply is None) == (turn.plan is None) == (turn.response_hash is None)
            assert turn.outcome != "failed"
            assert len(turn.plan.parts) == 1 if turn.plan else True
            assert turn.next is None or (turn.next.state == "default") <= (
                turn.next.context.keys() <= {"turns", "greeted"}
            )


def test_a_history_folds_to_what_was_logged_and_a_changed_one_does_not():
    for ruleset in (shop(), shop_with(settings={"gather": 3})):
        rulesets = {ruleset.hash: ruleset}
        for seed in range(CONVERSATIONS // 4):
            history = [as_logged(*one) for one in handled(ruleset, updates(seed))]
            assert list(replay(rulesets, history)) == [], seed
    forged = [*history[:-1], msgspec.structs.replace(history[-1], state_after="nowhere")]
    assert [found.field for found in replay(rulesets, forged)] == ["state_after"]


def test_of_a_history_without_its_beginning_what_can_be_folded_has_no_difference():
    """The fold begins after the first turn that leaves the same conversation whatever was before it."""
    folded = skipped = 0
    for ruleset in (shop(), shop_with(settings={"gather": 3, "escalation": {"mode": "handoff", "hold": "12 hours"}})):
        for seed in range(CONVERSATIONS):
            history = [as_logged(*one) for one in handled(ruleset, updates(seed))]
            for start in range(1, len(history)):
                fold = Fold({ruleset.hash: ruleset}.get, whole=False)
                assert [found for line in history[start:] for found in fold.add(line)] == [], (seed, start)
                folded, skipped = folded + fold.folded, skipped + fold.skipped
    assert folded > skipped


def test_the_log_is_a_chain():
    for seed in range(CONVERSATIONS):
        state = "default"
        for _, turn, _ in handled(shop(), updates(seed)):
            assert turn.log.state_before == state
            state = turn.log.state_after
