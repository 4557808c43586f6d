"""JSON Schema and TypeScript types of bot actions, generated from ``bot_actions``.

``python -m autopost_contracts.bot_action_types libs/contracts`` writes both files; a test compares them.
"""

import json
import sys
from pathlib import Path
from typing import Any

import msgspec

from autopost_contracts.bot_actions import (
    BOT_ACTION_STATUSES,
    BOT_ACTION_TYPES,
    DEFAULT_TEXTS,
    FALLBACK_TEXT,
    BotAction,
    BotActionEvent,
    ChatMessage,
    ChatMessageEvent,
    ResyncEvent,
)

SCHEMA_FILE = "bot-actions.schema.json"
TYPESCRIPT_FILE = "bot-actions.ts"
EVENTS = (ChatMessageEvent, BotActionEvent, ResyncEvent)
STRUCTS = (BotAction, ChatMessage, *EVENTS)

_ALIASES = {("BotAction", "status"): "BotActionStatus", ("BotAction", "actionType"): "BotActionType | (string & {})"}
"""Closed and open sets of words, which the schema writes out or leaves open."""


def json_schema() -> dict[str, Any]:
    _, schemas = msgspec.json.schema_components(STRUCTS, ref_template="#/$defs/{name}")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Events of an autopost chat stream",
        "oneOf": [{"$ref": f"#/$defs/{event.__name__}"} for event in EVENTS],
        "$defs": schemas,
    }


def schema_text() -> str:
    return json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"


def typescript() -> str:
    lines = [
        "// Generated from autopost_contracts.bot_actions; do not edit.",
        f"export const botActionStatuses = {_literals(BOT_ACTION_STATUSES)} as const;",
        "export type BotActionStatus = (typeof botActionStatuses)[number];",
        f"export const botActionTypes = {_literals(BOT_ACTION_TYPES)} as const;",
        "export type BotActionType = (typeof botActionTypes)[number];",
        "",
        "export const defaultTexts: Record<BotActionType, string> = {",
        *(f"  {name}: {_quoted(text)}," for name, text in DEFAULT_TEXTS.items()),
        "};",
        f"export const fallbackText = {_quoted(FALLBACK_TEXT)};",
    ]
    for name, schema in json_schema()["$defs"].items():
        lines += ["", *_interface(name, schema)]
    events = " | ".join(event.__name__ for event in EVENTS)
    lines += [
        "",
        f"export type ChatEvent = {events};",
        "",
        "export function shownText(action: BotAction): string {",
        "  if (action.displayText) return action.displayText;",
        "  const known = Object.hasOwn(defaultTexts, action.actionType);",
        "  return known ? defaultTexts[action.actionType as BotActionType] : fallbackText;",
        "}",
    ]
    return "\n".join(lines) + "\n"


def _interface(name: str, schema: dict[str, Any]) -> list[str]:
    required = set(schema["required"])
    fields = [
        f"  {field}{'' if field in required else '?'}: {_ALIASES.get((name, field)) or _type(kind)};"
        for field, kind in schema["properties"].items()
    ]
    return [f"export interface {name} {{", *fields, "}"]


def _type(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "anyOf" in schema:
        return " | ".join(_type(one) for one in schema["anyOf"])
    if "enum" in schema:
        return " | ".join(_quoted(value) for value in schema["enum"])
    return {"string": "string", "null": "null", "object": "Record<string, unknown>"}[schema["type"]]


def _literals(names: tuple[str, ...]) -> str:
    return f"[{', '.join(map(_quoted, names))}]"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def write(folder: Path) -> None:
    (folder / SCHEMA_FILE).write_text(schema_text(), encoding="utf-8")
    (folder / TYPESCRIPT_FILE).write_text(typescript(), encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
