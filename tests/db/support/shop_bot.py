"""A bot of the tenant that answers."""

from typing import Any

from db.support.builders import Tenant


async def make_bot(tenant: Tenant, **settings: Any) -> None:
    await tenant.db.execute(
        "INSERT INTO credential_bindings (workspace_id, auth_ref, platform, secret_ref) "
        "VALUES ($1, 'bot', 'max', 'env:TOKEN') ON CONFLICT DO NOTHING",
        tenant.workspace,
    )
    given = {"workspace_id": tenant.workspace, "auth_ref": "bot", "rate_group": "bot", **settings}
    places = ", ".join(f"${place}" for place in range(1, len(given) + 1))
    await tenant.db.execute(f"INSERT INTO bot_settings ({', '.join(given)}) VALUES ({places})", *given.values())
