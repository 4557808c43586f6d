"""Each finding of `bot lint`, with rules that have it and rules that do not."""

import pytest
from autopost_bot.engine.lint import lint
from autopost_bot.engine.ruleset import load_ruleset
from bot.support.shop_chat import rules, shop, shop_with

ASK = {"rule_id": "ask", "pattern": {"keywords": ["возврат"]}, "next_state": "number"}
TAKE = {"rule_id": "take", "state": "number", "capture": "number", "pattern": {"mode": "any"}, "next_state": "default"}


def found(ruleset, code):
    return [(one.severity, one.rule_id) for one in lint(ruleset) if one.code == code]


def keyed(rule_id, *keywords, mode="contains", **fields):
    return {"rule_id": rule_id, "pattern": {"mode": mode, "keywords": list(keywords)}, **fields}


def test_the_rules_of_the_seed_have_no_findings():
    assert lint(shop()) == []


def test_l0_a_rule_or_template_that_cannot_be_read():
    assert found(rules(keyed("r", "а", mode="regex")), "L0") == [("error", None)]
    assert found(rules(keyed("r", "слово", response_template="{{ x")), "L0") == [("error", "r")]
    assert found(rules(ASK, {**TAKE, "capture": "turns"}), "L0") == [("error", "take")]


@pytest.mark.parametrize("name", ["clarify", "invalid", "attachment", "flood", "expired"])
def test_l0_a_text_of_the_settings_that_cannot_be_read(name):
    (finding,) = (one for one in lint(rules(texts={name: "{{ broken"})) if one.code == "L0")
    assert (finding.severity, finding.rule_id) == ("error", None)
    assert f"texts.{name}" in finding.message
    assert found(rules(texts={name: "{{ unknown }}"}), "L7") == [("warning", None)]


@pytest.mark.parametrize("row", [list("abcdefgh"), ["x" * 280], [{"text": "x", "url": "javascript:1"}]])
def test_l0_buttons_that_no_message_can_have(row):
    assert found(rules(keyed("r", "слово", buttons=[row])), "L0") == [("error", "r")]
    assert found(rules(menu=[row]), "L0") == [("error", None)]


@pytest.mark.parametrize("wrong", [{"state": "operator"}, {"state": "default", "next_state": "operator"}])
def test_l0_a_state_of_the_bots_own(wrong):
    assert found(rules(keyed("r", "слово", **wrong)), "L0") == [("error", "r")]


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ({"kind": "order", "digits": [12, 4]}, {"kind": "order", "digits": [4, 4]}),
        ({"kind": "number", "min": 2, "max": 1}, {"kind": "number", "min": 0, "max": 1}),
        ({"kind": "choice"}, {"kind": "choice", "options": ["да"]}),
    ],
)
def test_l0_an_accept_that_takes_nothing(wrong, right):
    assert found(rules(ASK, {**TAKE, "accept": wrong}), "L0") == [("error", "take")]
    assert found(rules(ASK, {**TAKE, "accept": right}), "L0") == []


@pytest.mark.parametrize("wrong", [{"timezone": "Europe/Moskva"}, {"hours": {"mon": [["9", "21:00"]]}}])
def test_l0_hours_that_cannot_be_read(wrong):
    hours = {"thu": [["09:00", "21:00"]]}
    assert found(rules(hours=hours), "L0") == []
    assert found(rules(**{"hours": hours, **wrong}), "L0") == [("error", None)]
    assert found(rules(hours={}), "L0") == [("warning", None)]


@pytest.mark.parametrize(("day", "named"), [("wed", "wed: "), ("monday", "'monday' is not one of mon")])
def test_l0_each_day_of_the_hours_is_read(day, named):
    hours = {"thu": [["09:00", "21:00"]], day: [["9", "21:00"]]}
    (finding,) = (one for one in lint(rules(hours=hours)) if one.code == "L0")
    assert named in finding.message


def test_l1_a_rule_that_another_one_always_precedes():
    broad, narrow = keyed("broad", "достав", priority=2), keyed("narrow", "доставка", "доставим", priority=1)
    assert found(rules(broad, narrow), "L1") == [("error", "narrow")]
    assert found(rules(keyed("broad", "достав"), keyed("same", "достав")), "L1") == [("error", "same")]
    assert found(rules(broad, keyed("words", "доставка*", mode="words", priority=1)), "L1") == [("error", "words")]


@pytest.mark.parametrize(
    "changed",
    [
        {"pattern": {"keywords": ["достав"], "stop": ["обед"]}},
        {"state": "other"},
        {"priority": 1},
        {"pattern": {"keywords": ["доставка"]}},
    ],
)
def test_l1_is_exact(changed):
    broad = {**keyed("broad", "достав", priority=2), **changed}
    assert found(rules(broad, keyed("narrow", "доставка", "доставим", priority=1)), "L1") == []


def test_l2_rules_of_which_only_the_ids_decide():
    one, other = keyed("a", "доставка", "курьер"), keyed("b", "Доставка", "почта")
    assert found(rules(one, other), "L2") == [("warning", "b")]
    assert found(rules(one, {**other, "priority": 1}), "L2") == []


def test_l3_a_next_state_that_no_rule_has():
    assert found(rules(ASK), "L3") == [("error", "ask")]
    assert found(rules(ASK, TAKE), "L3") == []


def test_l4_a_state_nobody_enters():
    assert found(rules(TAKE), "L4") == [("warning", None)]


def test_l5_a_cycle_without_an_end():
    back = {**TAKE, "next_state": "again"}
    again = {"rule_id": "again", "state": "again", "pattern": {"mode": "any"}, "next_state": "number"}
    assert found(rules(ASK, back, again), "L5") == [("error", None), ("error", None)]
    assert found(rules(ASK, back, {**again, "next_state": "default"}), "L5") == []


def test_l6_a_scenario_without_cancel_words():
    start = {**ASK, "state": "default"}
    assert found(rules(start, TAKE, cancel_words=[]), "L6") == [("warning", None)]
    assert found(rules(start, TAKE), "L6") == []


def test_l7_a_variable_that_nobody_captured_before():
    assert found(rules({**ASK, "response_template": "{{ number }}"}, TAKE), "L7") == [("error", "ask")]
    assert found(rules(ASK, {**TAKE, "response_template": "{{ number }} {{ text }} {{ shop }}"}), "L7") == []


def test_l7_a_variable_that_is_captured_on_some_ways_only():
    other = {"rule_id": "skip", "pattern": {"keywords": ["сразу"]}, "next_state": "reason"}
    on = {**TAKE, "next_state": "reason"}
    last = {"rule_id": "last", "state": "reason", "pattern": {"mode": "any"}, "next_state": "default"}
    last["response_template"] = "{{ number }}"
    assert found(rules(ASK, on, last, other), "L7") == [("warning", "last")]
    assert found(rules(ASK, on, last), "L7") == []


def test_l8_an_answer_that_may_be_too_long():
    assert found(rules(ASK, {**TAKE, "response_template": "{{ number }}" * 21}), "L8") == [("warning", "take")]
    assert found(rules(ASK, {**TAKE, "response_template": "{{ number }}" * 20}), "L8") == []


@pytest.mark.parametrize(("max_turns", "expected"), [(3, [("error", "returns")]), (4, [])])
def test_l9_a_scenario_that_the_guard_ends_before_its_end(max_turns, expected):
    assert found(shop_with(returns={"max_turns": max_turns}), "L9") == expected


def test_l10_any_without_a_state():
    assert found(rules({"rule_id": "all", "pattern": {"mode": "any"}}), "L10") == [("error", "all")]


def test_l11_a_short_keyword():
    assert found(rules(keyed("r", "да", "???")), "L11") == [("warning", "r")] * 2


def test_l12_a_keyword_twice():
    assert found(rules(keyed("r", "Ещё", "еще", "ещё!")), "L12") == [("warning", "r")]
    assert found(rules(keyed("r", "оплат*", "оплата", mode="words")), "L12") == []


def test_l13_a_button_that_nothing_matches_where_it_is_pressed():
    assert found(rules(keyed("r", "доставка"), menu=[["Доставка", "Оплата"]]), "L13") == [("error", None)]
    assert found(rules(keyed("r", "доставка", buttons=[["Оплата", "Меню"]])), "L13") == [("error", "r")]
    assert found(rules({**ASK, "buttons": [["Не знаю"]]}, TAKE), "L13") == []
    callback = {"text": "Да", "callback": True}
    assert found(rules(keyed("r", "доставка", buttons=[[callback]])), "L13") == [("error", "r")]


def test_l14_an_intent_of_the_five_that_is_missing():
    assert len(found(shop_with(without=("contacts",), settings={"menu": []}), "L14")) == 1


def test_l15_chats_in_a_state_that_the_rules_lack():
    findings = lint(shop(), {"returns_order": 3, "default": 9, "operator": 1, "old_state": 2})
    assert [(one.code, one.severity) for one in findings] == [("L15", "error")]
    assert "2 chats" in findings[0].message and "old_state" in findings[0].message


def test_l16_a_scenario_in_groups():
    assert found(shop_with(settings={"answer_in": ["dialog", "chat"]}), "L16") == [("error", None)]
    stateless = load_ruleset([], {"answer_in": ["dialog", "chat"]})
    assert found(stateless, "L16") == []
