"""Sample claims."""

import time
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from autopost_contracts.ids import ChannelId, ClaimToken, DeliveryId, WorkspaceId
from autopost_contracts.plan import Plan, TextPart
from autopost_dispatcher.claim.claim import SendJob
from autopost_dispatcher.claim.lease import Lease
from autopost_dispatcher.gateway import Channel, Claim

WORKSPACE = WorkspaceId(UUID(int=1))


def claim(**fields: Any) -> Claim:
    """Fields of its channel are given beside its own."""
    own = {name: fields.pop(name) for name in Channel.__struct_fields__ if name in fields}
    channel = {"platform": "telegram", "target_id": "-1001", "auth_ref": "bot", "rate_group": "bot"} | own
    given: dict[str, Any] = {
        "workspace_id": WORKSPACE,
        "delivery_id": DeliveryId(uuid4()),
        "channel_id": ChannelId(uuid4()),
        "channel": Channel(**channel),
        "plan": Plan(version=2, platform="telegram", parts=(TextPart(text="one"),)),
        "attempt": 1,
        "claim_token": ClaimToken(uuid4()),
        "slot": 0.0,
        "progress": 0,
        "acknowledged": (),
        "verify": False,
        "trace_id": None,
        "traceparent": None,
        "created": datetime(2026, 1, 1, tzinfo=UTC).timestamp(),
        "claimed_at": datetime(2026, 1, 1, tzinfo=UTC),
    }
    return Claim(**(given | fields))


def job(lease: timedelta = timedelta(minutes=5), **fields: Any) -> SendJob:
    now = time.monotonic()
    return SendJob(claim(**fields), now, Lease(now + lease.total_seconds()), None)
