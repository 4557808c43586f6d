"""A bot with a backlog, and the calls of conversations that are made there all the time."""

import json
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import uuid4

from db.support.bots import Bot, outcome, permanent, turn
from db.support.builders import Tenant

CHATS = 20
DAY = timedelta(days=1)
BACKLOG = """
WITH chat AS (
    INSERT INTO bot_chats (workspace_id, chat_id, changed_at, due_at)
    SELECT $1, 'waiting ' || gen_random_uuid(), now(), now() FROM generate_series(1, $2) AS n
    RETURNING chat_id
), asked AS (
    INSERT INTO bot_inbox (workspace_id, provider, chat_id, provider_message_id, provider_ts)
    SELECT $1, 'max', chat_id, 'mid', 1 FROM chat
), heard AS (
    INSERT INTO bot_inbox (workspace_id, provider, chat_id, provider_message_id, provider_ts, processed_at)
    SELECT $1, 'max', chat_id, 'mid before', 0, now() - interval '1 day' FROM chat
), answered AS (
    INSERT INTO bot_outbox (workspace_id, chat_id, inbound_provider_message_id, response_hash, sent_at)
    SELECT $1, chat_id, 'mid before', '', now() - interval '1 day' FROM chat
), known AS (
    INSERT INTO bot_state (workspace_id, chat_id, expires_at) SELECT $1, chat_id, now() - interval '1 day' FROM chat
)
INSERT INTO bot_logs (workspace_id, chat_id, ts, message_text, state_before, state_after)
SELECT $1, chat_id, now() - interval '1 day', '', 'default', 'default' FROM chat
"""
"""Customers who wait for an answer and had one yesterday, past the triggers."""


@dataclass
class Conversations:
    bot: Bot
    deciding: list[Any]
    """Chats that a worker has, with an update each."""
    replying: list[Any]
    """Chats whose reply is being sent."""

    @classmethod
    async def open(cls, tenant: Tenant) -> "Conversations":
        bot = await Bot.create(tenant)
        for number in range(2 * CHATS):
            await bot.arrive(f"chat {number}")
        taken = await bot.take(2 * CHATS, lease=DAY)
        deciding, replying = taken[:CHATS], taken[CHATS:]
        await bot.decide(*replying)
        for number in range(CHATS):
            await bot.arrive(f"next {number}")
        return cls(bot, deciding, replying)

    def calls(self) -> dict[str, tuple[str, tuple[Any, ...]]]:
        workspace = self.bot.workspace
        (deciding, fences), (replying, others) = map(_fences, (self.deciding, self.replying))
        first = (replying[0], others[0])
        mine = {"workspace_id": str(workspace)}
        turns = json.dumps([turn(one) | mine for one in self.deciding])
        well, ill = (json.dumps([of(one) | mine for one in self.replying]) for of in (outcome, permanent))
        patience, workspaces = timedelta(seconds=5), [workspace] * CHATS
        return {
            "due_bot_workspaces": ("SELECT * FROM due_bot_workspaces(1000)", ()),
            "take_chats_across": (
                "SELECT * FROM take_chats_across($1, $2, $3)",
                ([workspace, uuid4()], [CHATS] * 2, DAY),
            ),
            "read_ruleset": ("SELECT * FROM read_ruleset($1)", (workspace,)),
            "keep_ruleset": ("SELECT keep_ruleset($1, 'hash', '[]', '{}')", (workspace,)),
            "commit_turns_across": ("SELECT * FROM commit_turns_across($1, $2)", (turns, patience)),
            "read_turns": ("SELECT * FROM read_turns($1, $2, $3)", (workspace, deciding, fences)),
            "release_chats": ("SELECT release_chats($1, $2, $3)", (workspace, deciding, fences)),
            "renew_chats": ("SELECT * FROM renew_chats($1, $2, $3, $4)", (workspace, deciding, fences, DAY)),
            "take_reply_slots": (
                "SELECT * FROM take_reply_slots($1, $2, $3, $4, $5, $6)",
                (workspaces, replying, others, [False] * CHATS, [None] * CHATS, patience),
            ),
            "take_press_slot": ("SELECT * FROM take_press_slot($1, $2, $3)", (workspace, replying[0], patience)),
            "record_reply_part": ("SELECT record_reply_part($1, $2, $3, 0, '{17}')", (workspace, *first)),
            "commit_replies_across": ("SELECT * FROM commit_replies_across($1)", (well,)),
            "commit_replies_across, all refused": ("SELECT * FROM commit_replies_across($1)", (ill,)),
            "retain_bot_logs": ("SELECT retain_bot_logs('1 hour', 50)", ()),
            "retain_bot_logs, none is old": ("SELECT retain_bot_logs('10 days', 50)", ()),
            "retain_bot_outbox": ("SELECT retain_bot_outbox('1 hour', 10)", ()),
            "retain_bot_outbox, none is old": ("SELECT retain_bot_outbox('10 days', 50)", ()),
            "retain_bot_rulesets": ("SELECT retain_bot_rulesets('1 hour', 50)", ()),
            "retain_bot_state": ("SELECT retain_bot_state('1 hour', 50)", ()),
            "retain_bot_state, none is old": ("SELECT retain_bot_state('10 days', 50)", ()),
        }


def _fences(taken: list[Any]) -> tuple[list[str], list[Any]]:
    return [one["chat_id"] for one in taken], [one["lease_token"] for one in taken]
