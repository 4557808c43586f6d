"""When the platform of a bot answers again, its chats are taken: the first reply is the trial of the half circuit."""

from collections.abc import Mapping
from datetime import timedelta

from autopost_runtime.lifecycle import probing
from autopost_runtime.lifecycle.probing import Probe, Probed
from autopost_runtime.lifecycle.service import Service

from autopost_bot.conversation.gateway import ConversationGateway
from autopost_bot.conversation.schedule import ChatSchedule


class Prober(probing.Prober):
    def __init__(
        self,
        gateway: ConversationGateway,
        adapters: Mapping[str, Probed],
        identities: probing.Identities,
        service: Service,
        schedule: ChatSchedule,
        *,
        every: timedelta,
        timeout: timedelta,
    ) -> None:
        super().__init__(gateway, adapters, identities, service, every=every, timeout=timeout)
        self._schedule = schedule

    async def answered(self, probe: Probe) -> None:
        self._schedule.wake(probe.workspace_id)
