"""Bot actions: the names on the wire, the default texts, and the files generated from them."""

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import get_args
from uuid import UUID

import msgspec
import pytest
from autopost_contracts.bot_action_types import SCHEMA_FILE, TYPESCRIPT_FILE, schema_text, typescript
from autopost_contracts.bot_actions import (
    BOT_ACTION_STATUSES,
    BOT_ACTION_TYPES,
    DEFAULT_TEXTS,
    FALLBACK_TEXT,
    BotAction,
    BotActionStatus,
    BotActionType,
    shown_text,
)
from autopost_contracts.ids import WorkspaceId, chat_token
from autopost_contracts.subjects import Topology

LIBRARY = Path(__file__).parents[2] / "libs" / "contracts"
WORKSPACE = WorkspaceId(UUID("5f000000-0000-4000-8000-000000000002"))


def action(**fields: object) -> BotAction:
    now = datetime(2026, 11, 19, tzinfo=UTC)
    given = {"action_type": "summarize", "status": "processing", "display_text": None, "payload": None, **fields}
    return BotAction(
        workspace_id=WORKSPACE,
        chat_id="7",
        action_id="a",
        created_at=now,
        updated_at=now,
        **given,  # type: ignore[arg-type]
    )


def test_the_names_on_the_wire_are_those_of_the_document() -> None:
    assert list(msgspec.json.decode(msgspec.json.encode(action()))) == [
        *("workspaceId", "chatId", "actionId", "actionType", "status"),
        *("displayText", "payload", "createdAt", "updatedAt"),
    ]


def test_statuses_and_types_are_the_documented_ones_and_each_type_has_a_default_text() -> None:
    assert BOT_ACTION_STATUSES == get_args(BotActionStatus) == ("processing", "done", "error")
    assert get_args(BotActionType) == BOT_ACTION_TYPES == tuple(DEFAULT_TEXTS)
    assert DEFAULT_TEXTS == {
        "transcribe_audio": "Готовим стенограмму…",
        "summarize": "Готовим саммари…",
        "generate_image": "Создаём изображение…",
        "process_file": "Обрабатываем файл…",
    }


@pytest.mark.parametrize(
    ("fields", "shown"),
    [
        ({"display_text": "Читаем"}, "Читаем"),
        ({}, "Готовим саммари…"),
        ({"action_type": "translate"}, FALLBACK_TEXT),
        ({"action_type": "translate", "display_text": "Переводим"}, "Переводим"),
        ({"action_type": "constructor"}, "Выполняем действие…"),
    ],
)
def test_a_text_of_its_own_comes_before_the_default_and_that_before_the_neutral_one(
    fields: dict[str, str], shown: str
) -> None:
    assert shown_text(action(**fields)) == shown


def test_the_committed_schema_and_types_are_the_generated_ones() -> None:
    again = "run: .venv/bin/python -m autopost_contracts.bot_action_types libs/contracts"
    assert (LIBRARY / SCHEMA_FILE).read_text(encoding="utf-8") == schema_text(), again
    assert (LIBRARY / TYPESCRIPT_FILE).read_text(encoding="utf-8") == typescript(), again


@pytest.mark.parametrize("chat_id", ["7", "-1", "user:42", "a/b.*> 🙂", "*", ">", "🙂" * 200, " ", "\x07"])
def test_a_chat_id_of_any_text_becomes_one_safe_token_of_a_subject(chat_id: str) -> None:
    token = chat_token(WORKSPACE, chat_id)

    assert re.fullmatch("[a-z2-7]{26}", token)
    assert Topology().chat(WORKSPACE, token).split(".") == ["autopost", "chat", str(WORKSPACE), token]


def test_the_same_chat_id_in_two_workspaces_has_two_tokens() -> None:
    other = WorkspaceId(UUID("0de00000-0000-4000-8000-000000000001"))

    assert chat_token(WORKSPACE, "7") != chat_token(other, "7")
