"""`autopost bot rules …`, `lint`, `test`, `chat`: rules as files and as versions in the database."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from autopost_cli.bot.rules_file import read_ruleset
from bot.support.shop_chat import EXAMPLES
from harness.autopost_command import Autopost, Ran
from harness.databases import Database

SIGNED = ("--operator", "ann", "--reason", "release 7")
SHOP = ("--workspace", "shop")
RULES = ("--rules", str(EXAMPLES / "rules.yaml"))


class Shop:
    def __init__(self, database: Database) -> None:
        self.db = database.pool
        self._autopost = Autopost(database.url)

    async def __call__(self, *words: object, stdin: str = "") -> Ran:
        return await self._autopost("bot", *words, *SHOP, stdin=stdin)

    async def answering(self) -> dict[str, int]:
        rows = (await self("rules", "list", "--json")).json["rules"]
        return {row["rule_id"]: row["version"] for row in rows}


@pytest.fixture
def shop(seeded_database: Database) -> Shop:
    return Shop(seeded_database)


@pytest.fixture
def changed(tmp_path: Path) -> Callable[..., Path]:
    """The rules of the repository with another answer to «доставка»."""

    def write(**fields: Any) -> Path:
        document = yaml.safe_load((EXAMPLES / "rules.yaml").read_text())
        document["rules"][0] |= {"response_template": "Доставим завтра.", **fields}
        path = tmp_path / "rules.yaml"
        path.write_text(yaml.safe_dump(document, allow_unicode=True))
        return path

    return write


async def test_what_is_exported_imports_without_a_new_version(shop: Shop, tmp_path: Path):
    exported = tmp_path / "exported.yaml"
    assert (await shop("rules", "export", exported)).code == 0

    imported = await shop("rules", "import", exported, *SIGNED, "--json")

    assert {row["verdict"] for row in imported.json["results"]} == {"unchanged"}
    assert imported.code == 1  # nothing to do
    assert "differ" not in imported.err


async def test_a_release_is_imported_enabled_and_undone(shop: Shop, changed: Callable[..., Path]):
    before = await shop.answering()

    imported = await shop("rules", "import", changed(), *SIGNED)
    assert imported.code == 0 and "added" in imported.out
    assert await shop.answering() == before

    dry = await shop("rules", "enable", "--newest", *SIGNED, "--dry-run")
    assert dry.code == 0 and "Dry run" in dry.out
    assert await shop.answering() == before

    enabled = await shop("rules", "enable", "--newest", *SIGNED, "--json")
    moved = [row for row in enabled.json["results"] if row["verdict"] == "enabled"]
    assert moved == [{"rule_id": "delivery", "was": 1, "is": 2, "verdict": "enabled"}]
    assert (await shop.answering())["delivery"] == 2

    assert (await shop("rules", "enable", "delivery=1", *SIGNED)).code == 0
    assert await shop.answering() == before
    shown = await shop("rules", "show", "delivery", "--version", 2)
    assert "version 2, not enabled" in shown.out and "Доставим завтра." in shown.out


async def test_a_release_with_errors_is_refused_and_they_are_named(shop: Shop, changed: Callable[..., Path]):
    broken = changed(next_state="nowhere")
    refused = await shop("rules", "import", broken, "--enable", *SIGNED)
    assert refused.code == 1
    assert "L3 error: delivery" in refused.err
    assert "the rules have 1 errors" in refused.err
    assert (await shop.answering())["delivery"] == 1

    forced = await shop("rules", "import", broken, "--enable", "--force", *SIGNED)
    assert forced.code == 0
    assert (await shop.answering())["delivery"] == 2


async def test_a_release_names_each_rule_once_and_versions_that_are_there(shop: Shop):
    before = await shop.answering()
    for named, words in (
        (("delivery=1", "delivery"), "delivery is named twice"),
        (("delivery=99",), "rule delivery has no version 99;"),
        (("delivery=" + "9" * 5000,), "rule delivery has no version 999"),
        (("unknown",), "rule unknown has no version at all"),
    ):
        refused = await shop("rules", "enable", *named, "--force", *SIGNED)
        assert refused.code in (1, 2) and words in refused.err
    assert await shop.answering() == before


async def test_rules_that_are_disabled_answer_no_more(shop: Shop):
    assert (await shop("rules", "disable", "thanks", *SIGNED)).code == 0
    assert "thanks" not in await shop.answering()
    meta = json.loads(await shop.db.fetchval("SELECT meta FROM events WHERE action = 'bot_rules_changed'"))
    assert (meta["operator"], meta["reason"], meta["what"]) == ("ann", "release 7", "enabled")
    assert len({meta["was"], meta["is"]}) == 2


async def test_lint_of_a_workspace_knows_the_states_of_its_chats(shop: Shop):
    assert (await shop("lint")).code == 0
    await shop.db.execute(
        "INSERT INTO bot_state (workspace_id, chat_id, state, expires_at) "
        "SELECT workspace_id, '7', 'old_state', now() + interval '1 hour' FROM workspaces WHERE name = 'shop'"
    )
    found = await shop("lint", "--json")
    assert found.code == 1
    assert [one["code"] for one in found.json["findings"]] == ["L15"]


async def test_the_conversations_and_the_corpus_of_the_repository_pass():
    offline = Autopost("")
    for name in ("conversations.yaml", "corpus.yaml"):
        ran = await offline("bot", "test", EXAMPLES / name, *RULES)
        assert (ran.code, ran.out) == (0, f"{11 if 'conv' in name else 75} run, 0 failures\n")


async def test_a_failed_expectation_names_file_conversation_and_turn(tmp_path: Path):
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text("- {name: adieu, turns: [{say: доставка, rule: payment}]}")
    ran = await Autopost("")("bot", "test", wrong, *RULES)
    assert ran.code == 1
    assert "wrong.yaml: adieu, turn 1: rule: expected 'payment', got 'delivery'" in ran.out


@pytest.mark.parametrize("text", ["a: [", "- 1", "5", "- {turns: [{}]}", "rules: 1"])
async def test_a_file_that_is_not_written_as_it_should_be_is_a_message(tmp_path: Path, text: str):
    path = tmp_path / "odd.yaml"
    path.write_text(text)
    for words in (("test", path, *RULES), ("lint", "--rules", path)):
        ran = await Autopost("")("bot", *words)
        assert ran.code == 1
        assert ran.err.startswith(f"Error: {path}: ")


async def test_a_talk_in_the_terminal_can_be_saved_and_run_as_a_test(tmp_path: Path):
    saved = tmp_path / "talk.yaml"
    lines = [
        "возврат",
        ":why",
        ":state",
        ":wait 31m",
        "12345",
        ":why",
        "отмена",
        ":press Доставка",
        ":wait 31m",
        ":photo",
        f":save {saved}",
        ":quit",
    ]

    ran = await Autopost("")("bot", "chat", *RULES, stdin="\n".join(lines))

    assert "Поможем с возвратом" in ran.out
    assert "returns: wins: priority 60, возврат*" in ran.out
    assert "«12345» in state default" in ran.out
    assert "delivery: none of its keywords is there" in ran.out
    assert "[Доставка] [Оплата]" in ran.out
    again = await Autopost("")("bot", "test", saved, *RULES)
    assert (again.code, again.out) == (0, "1 run, 0 failures\n")


async def test_a_talk_is_not_saved_over_another_kind_of_file(tmp_path: Path):
    corpus = tmp_path / "corpus.yaml"
    corpus.write_text("delivery: [доставка]\n")

    ran = await Autopost("")("bot", "chat", *RULES, stdin=f"доставка\n:save {corpus}\n:quit")

    assert (ran.code, corpus.read_text()) == (1, "delivery: [доставка]\n")
    assert "corpus.yaml: holds no list of conversations" in ran.err


async def test_without_rules_or_a_database_it_says_what_to_name(monkeypatch: pytest.MonkeyPatch):
    ran = await Autopost("")("bot", "lint")
    assert ran.code == 2 and "--rules" in ran.err


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"cancel_wrods": ["стоп"]}, "unknown field 'cancel_wrods'; did you mean 'cancel_words'?"),
        ({"texts": {"greting": "x"}}, "unknown field 'texts.greting'; did you mean 'texts.greeting'?"),
        ({"fallback": {"zzz": 1}}, "unknown field 'fallback.zzz'"),
    ],
)
def test_a_setting_of_a_file_that_nobody_knows_is_named(tmp_path: Path, settings: dict[str, Any], named: str):
    path = tmp_path / "rules.yaml"
    path.write_text(yaml.safe_dump({"rules": [], "settings": settings}))
    with pytest.raises(click.ClickException) as refused:
        read_ruleset(path)
    assert named in refused.value.message
