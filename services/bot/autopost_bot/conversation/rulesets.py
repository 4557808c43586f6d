"""The rulesets of workspaces in memory, loaded anew exactly when the database says that they changed.

Every take returns ``rules_seq``, which rises in the transaction that changes a rule. So no turn is decided by rules
older than its take, on any replica, and nothing polls.
"""

import asyncio
from collections import OrderedDict

from autopost_contracts.ids import WorkspaceId
from autopost_runtime.telemetry import metrics
from autopost_runtime.telemetry.logs import get_logger

from autopost_bot.conversation.gateway import ConversationGateway
from autopost_bot.conversation.taken import Bot

MOST_KEPT = 1000

loads = metrics.counter("autopost_bot_ruleset_loads_total", "Rulesets read from the database.")


class NoBot(Exception):  # noqa: N818  named for what happened
    """The workspace has no bot any more."""


class Rulesets:
    def __init__(self, gateway: ConversationGateway) -> None:
        self._gateway = gateway
        self._known: OrderedDict[WorkspaceId, Bot] = OrderedDict()
        self._loading: dict[WorkspaceId, asyncio.Lock] = {}

    def known(self, workspace: WorkspaceId) -> Bot | None:
        return self._known.get(workspace)

    async def get(self, workspace: WorkspaceId, rules_seq: int) -> Bot:
        """Raises ``InvalidRule`` or ``NoBot``."""
        bot = self._current(workspace, rules_seq)
        if bot is not None:
            return bot
        async with self._loading.setdefault(workspace, asyncio.Lock()):
            return self._current(workspace, rules_seq) or await self._load(workspace)

    def _current(self, workspace: WorkspaceId, rules_seq: int) -> Bot | None:
        bot = self._known.get(workspace)
        if bot is None or bot.rules_seq < rules_seq:
            return None
        self._known.move_to_end(workspace)
        return bot

    async def _load(self, workspace: WorkspaceId) -> Bot:
        bot = await self._gateway.read_bot(workspace)
        loads.add(1)
        if bot is None:
            raise NoBot
        for refused in bot.ruleset.refused:
            get_logger().error("rule.refused", workspace_id=str(workspace), problem=refused)
        await self._gateway.keep_ruleset(workspace, bot)
        self._known[workspace] = bot
        while len(self._known) > MOST_KEPT:
            gone, _ = self._known.popitem(last=False)
            self._loading.pop(gone, None)
        return bot
