"""Subscribe the development bots of the seed to the simulator, so that whoever writes there gets an answer."""

from collections.abc import Mapping

import httpx

from autopost_cli.development import BOTS
from autopost_cli.embedded.processes import BackendError

PATH = "/v1/bot/max"
TYPES = ("message_created", "message_callback", "bot_started", "bot_stopped")


async def subscribe_bots(simulator: str, ingest: str, env: Mapping[str, str]) -> None:
    """The name is for the page of the simulator. A bot without a token in the environment is left out."""
    async with httpx.AsyncClient(timeout=10) as http:
        for bot in BOTS:
            token = env.get(bot.variable)
            if not token:
                continue
            named = {"platform": "max", "token": token, "name": bot.name}
            hook = {"url": f"{ingest}{PATH}", "update_types": list(TYPES), "secret": bot.webhook_secret}
            try:
                (await http.post(f"{simulator}/_sim/tokens", json=named)).raise_for_status()
                answer = await http.post(f"{simulator}/max/subscriptions", headers={"Authorization": token}, json=hook)
                answer.raise_for_status()
            except httpx.HTTPError as error:
                raise BackendError(f"the simulator does not take the webhook of {bot.name} ({error})") from None
