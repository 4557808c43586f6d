"""A token is replaced while the services run: the next post goes out with the new one."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import msgspec
from autopost_cli.auth.gateway import Binding, bind_credential
from autopost_cli.development import TOKENS, WORKSPACE
from autopost_runtime.config.load import Secret
from autopost_runtime.secrets.sealing import Label, new_key, read_keys
from harness.eventually import eventually

from e2e.conftest import StartSystem
from e2e.system import System

OLD = TOKENS["AUTOPOST_DEMO_TELEGRAM_TOKEN"]
NEW = "1000001:a-new-token-for-the-same-bot-0123456789"
LABEL = Label(WORKSPACE, "telegram", "demo-telegram")


async def calls(system: System) -> list[dict[str, Any]]:
    answer = await system.http.get(f"{system.places['simulator']}/_sim/log")
    return [msgspec.json.decode(line) for line in answer.content.splitlines() if line]


async def call_for(system: System, text: str) -> dict[str, Any]:
    """The one call that the post of this text has led to, once its delivery has ended."""
    assert (await system.post(text=text)).status_code == 202

    async def ended() -> bool:
        return not set(await system.statuses()) & {"queued", "claimed", "sending", "retry"}

    await eventually(ended, within=timedelta(minutes=1))
    [call] = [call for call in await calls(system) if call["text"] == text]
    return call


async def test_a_refused_token_is_looked_up_again_and_the_next_post_goes_with_the_new_one(
    start_system: StartSystem,
) -> None:
    env = {"AUTOPOST_SECRETS_KEY": new_key().reveal()}
    keys = read_keys(env)
    assert keys is not None
    system = await start_system(**env, AUTOPOST_PAUSE_ON_PERMANENT="10ms")
    await system.database.execute(
        "UPDATE channels SET enabled = (title = 'Demo Telegram 1'), rate_rps = NULL WHERE workspace_id = $1",
        UUID(WORKSPACE),
    )
    pid = system.stack.pid("dispatcher")

    before = await call_for(system, "with the old token")
    sealed = Binding(secret_ref="sealed", sealed=keys.seal(Secret(NEW), LABEL), bot_id="1000001")
    database_url = system.places["database_url"]
    answer = await bind_credential(
        database_url, UUID(WORKSPACE), LABEL.platform, LABEL.auth_ref, sealed, "ann", "leaked"
    )
    await system.control("tokens", {"platform": "telegram", "token": OLD, "state": "revoked"})
    refused = await call_for(system, "still with the old token, which is remembered")
    after = await call_for(system, "with the new token")

    assert answer == {"verdict": "rotated", "old_secret_ref": "env:AUTOPOST_DEMO_TELEGRAM_TOKEN"}
    assert [call["status"] for call in (before, refused, after)] == [200, 401, 200]
    assert before["token"] == refused["token"] != after["token"]
    assert system.stack.pid("dispatcher") == pid
