"""What `why` answers, in the words of the tests."""

import json
from typing import Any

from db.support.builders import Tenant


async def ask(tenant: Tenant, subject: Any, **named: Any) -> list[dict[str, Any]]:
    places = "".join(f", p_{name} => ${place}" for place, name in enumerate(named, 2))
    answer = await tenant.db.fetchval(f"SELECT why($1{places})", str(subject), *named.values())
    found: list[dict[str, Any]] = json.loads(answer)["found"]
    return found


async def ask_one(tenant: Tenant, subject: Any, **named: Any) -> dict[str, Any]:
    [found] = await ask(tenant, subject, **named)
    return found
