import random

import pytest
from autopost_bot.engine.match import match
from autopost_bot.engine.ruleset import load_ruleset
from bot.support.shop_chat import example_rules, rules


def winner(ruleset, text, state="default"):
    hits = match(ruleset, state, text).hits
    return hits[0].rule.rule_id if hits else None


def rule(mode, *keywords, **pattern):
    return rules({"rule_id": "r", "pattern": {"mode": mode, "keywords": list(keywords), **pattern}})


@pytest.mark.parametrize(
    "text", ["Сколько ДОСТАВКА стоит", "дост\u00e1вка", "доставкё", "бездоставки", "с\u00a0доставкой"]
)
def test_contains_finds_a_keyword_anywhere_in_the_text_whatever_its_case(text):
    assert winner(rule("contains", "Доставк"), text) == "r"


def test_a_rule_in_the_format_of_the_documents_matches():
    seed_row = {
        "rule_id": "delivery",
        "version": 1,
        "enabled": True,
        "intent": "delivery",
        "pattern": {"keywords": ["доставк", "привез"], "mode": "contains"},
        "priority": 50,
        "max_turns": 5,
        "state": None,
        "capture": None,
        "response_template": "Доставляем.",
        "next_state": None,
    }
    assert winner(load_ruleset([seed_row]), "а доставка есть?") == "delivery"


@pytest.mark.parametrize(
    ("keyword", "text", "expected"),
    [
        ("позвонить", "можно позвонить вам", "r"),
        ("позвонить", "позвоните", None),
        ("позвон*", "перезвонить", None),
        ("позвон*", "позвоните мне", "r"),
        ("позвон*", "корсет для позвоночника", "r"),
        ("не подош*", "куртка не подошла", "r"),
        ("не подош*", "не очень подошла", None),
        ("пункт* выдачи", "в пункте выдачи", "r"),
        ("пункт выдачи", "в пункте выдачи", None),
        ("e-mail", "какой у вас e mail?", "r"),
        ("сбп", "сбпшечка", None),
        ("да", "нет, да", "r"),
    ],
)
def test_words_are_whole_words_in_a_row_and_a_star_leaves_the_end_open(keyword, text, expected):
    assert winner(rule("words", keyword), text) == expected


@pytest.mark.parametrize("text", ["Да", "да!", "1"])
def test_a_choice_is_an_option_or_its_number(text):
    assert winner(rule("choice", options=["да", "нет"]), text) == "r"


def test_a_choice_is_nothing_else():
    assert winner(rule("choice", options=["да", "нет"]), "да нет наверное") is None
    assert winner(rule("choice", options=["да", "нет"]), "3") is None


def test_a_choice_without_options_takes_the_buttons_of_its_question():
    ask = {"rule_id": "ask", "pattern": {"keywords": ["цвет"]}, "next_state": "color", "buttons": [["Белый", "Чёрный"]]}
    take = {"rule_id": "take", "state": "color", "capture": "color", "pattern": {"mode": "choice", "options": []}}

    found = match(rules(ask, take), "color", "черный")

    assert [(hit.rule.rule_id, hit.value) for hit in found.hits] == [("take", "Чёрный")]


def test_stop_words_forbid_a_rule():
    ruleset = rule("words", "контакт*", stop=["контактные линзы"])
    assert winner(ruleset, "ваши контакты") == "r"
    assert winner(ruleset, "контактные линзы есть?") is None


def test_a_keyword_of_which_nothing_is_left_matches_nothing():
    assert winner(rule("contains", "???", ""), "что угодно") is None
    assert winner(rule("words", "*"), "что угодно") is None


@pytest.mark.parametrize("text", ["дотсавка", "достака", "доставвка", "доствака", "даставка"])
def test_one_typing_error_is_forgiven_where_the_rule_says_so(text):
    fuzzy = rule("words", "доставка", fuzzy=True)
    assert winner(fuzzy, text) == "r"
    assert match(fuzzy, "default", text).by == "typo"
    assert winner(rule("words", "доставка"), text) is None


@pytest.mark.parametrize("text", ["дтсавкоа", "поставка", "доставки", "дота", "вставка"])
def test_more_than_one_error_or_one_at_either_end_of_the_word_is_not(text):
    assert winner(rule("words", "доставка", fuzzy=True), text) is None


def test_short_words_must_be_right():
    assert winner(rule("words", "обме", fuzzy=True), "обмы") is None


def test_another_keyboard_layout_is_read_where_the_rule_says_so():
    assert winner(rule("words", "доставка", layout=True), "ljcnfdrf") == "r"
    assert winner(rule("words", "доставка"), "ljcnfdrf") is None
    assert match(rule("words", "доставка", layout=True), "default", "ljcnfdrf").by == "layout"


def test_a_later_pass_runs_only_if_the_earlier_found_nothing():
    exact = {"rule_id": "exact", "pattern": {"mode": "words", "keywords": ["контракт"]}}
    fuzzy = {"rule_id": "fuzzy", "priority": 9, "pattern": {"mode": "words", "keywords": ["контакт"], "fuzzy": True}}
    assert winner(rules(exact, fuzzy), "контракт") == "exact"


def test_priority_then_the_longest_keyword_then_the_id_decide():
    low = {"rule_id": "a", "priority": 1, "pattern": {"keywords": ["доставка курьером"]}}
    short = {"rule_id": "b", "priority": 2, "pattern": {"keywords": ["доставк"]}}
    long = {"rule_id": "d", "priority": 2, "pattern": {"keywords": ["курьером"]}}
    same = {"rule_id": "c", "priority": 2, "pattern": {"keywords": ["доставка"]}}
    found = match(rules(low, short, long, same), "default", "доставка курьером")
    assert [hit.rule.rule_id for hit in found.hits] == ["c", "d", "b", "a"]


def test_equal_priorities_are_decided_the_same_whatever_the_order_of_the_rows():
    rows = [
        {"rule_id": f"r{n}", "intent": "i", "response_template": "x", "pattern": {"keywords": ["доставк", "оплат"]}}
        for n in range(40)
    ]
    shuffled = random.Random(32)
    winners = set()
    for _ in range(200):
        shuffled.shuffle(rows)
        winners.add(winner(load_ruleset(rows), "доставка и оплата"))
    assert winners == {"r0"}


def test_rules_of_another_state_do_not_match():
    ruleset = rules({"rule_id": "r", "state": "s", "pattern": {"mode": "any"}})
    assert winner(ruleset, "что угодно", "s") == "r"
    assert winner(ruleset, "что угодно") is None


def test_a_rule_that_cannot_be_read_is_set_aside_and_the_others_answer():
    broken = {
        "rule_id": "broken",
        "intent": "i",
        "response_template": "x",
        "pattern": {"mode": "regex", "keywords": []},
    }
    ruleset = load_ruleset([broken, *example_rules()["rules"]])
    assert winner(ruleset, "доставка") == "delivery"
    assert [problem for problem in ruleset.refused if "broken" in problem and "mode" in problem]
