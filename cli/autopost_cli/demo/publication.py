"""The sixth guarantee: what was approved goes out at its time and once, although NATS is gone meanwhile."""

import asyncio
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from autopost_cli.demo.finding import Finding
from autopost_cli.demo.system import ConditionNotMet, DemoSystem, Row

PLACE = 9
"""Of the channel, which no other criterion spoils."""
TEXT = "An approved advertisement"
LIFE = ["drafted", "approved", "scheduled", "due", "published"]
FINAL = ("published", "paused", "failed", "cancelled")


async def published(system: DemoSystem, finding: Finding, sabotage: bool) -> None:
    channel = (await system.sql("channels"))[PLACE]
    publication = UUID((await system.draft(channel["channel_id"], TEXT))["publication_id"])
    plan = await system.publication(publication, "preview")
    await system.publication(publication, "approve", {"plan_hash": plan["plan_hash"]})
    if sabotage:
        await system.sql("forge_approval", publication)
    at = datetime.now(UTC) + system.wait
    await system.publication(publication, "schedule", {"at": at.isoformat()})
    finding.done.append(f"drafted for chat {channel['target_id']}, approved, and scheduled in {system.wait.seconds} s")

    async def ended() -> Row | None:
        (row,) = await system.sql("publication", publication)
        return row if row["status"] in FINAL else None

    async with system.without_nats() as was_there:
        finding.done.append("NATS is stopped" if was_there else "NATS is not ours to stop: it is left as it is")
        await asyncio.sleep(max(0.0, (at - datetime.now(UTC)).total_seconds()))
        try:
            row = await system.until("the publication has ended", ended)
        except ConditionNotMet as unmet:
            finding.check(str(unmet), False)
            (row,) = await system.sql("publication", publication)
    if was_there and row["status"] == "published":
        await _command_is_relayed(system, publication)
        finding.done.append("NATS is started again: the command of the publication comes after all")
    _judge(finding, row, await system.calls(TEXT), at)


async def _command_is_relayed(system: DemoSystem, publication: UUID) -> None:
    async def relayed() -> bool:
        (row,) = await system.sql("publication", publication)
        return bool(row["relayed"])

    await system.until("the command is in the stream", relayed)


def _judge(finding: Finding, row: Row, calls: list[dict[str, Any]], at: datetime) -> None:
    finding.database.append(f"{row['status']}: {' → '.join(row['life'])}")
    if row["pause_code"]:
        finding.database.append(f"paused: {row['pause_code']}")
    came = [datetime.fromisoformat(call["arrived_at"]) for call in calls]
    finding.simulator += [f"the call came {(one - at).total_seconds():.3f} s after its time" for one in came]
    finding.check("it is published, and its log tells of each step", list(row["life"]) == LIFE)
    finding.check("the chat shows it once", [call["verdict"] for call in calls] == ["accepted"])
    finding.check("not before its time", bool(came) and min(came) >= at)
    finding.check(
        "the message that the platform names is the one of the publication",
        [[str(one) for one in call["message_ids"]] for call in calls] == [[row["published_message_id"]]],
    )
