"""The dispatcher's calls into the database: one method per function, no other SQL."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import MAXYEAR, UTC, datetime, timedelta
from typing import Any, Literal
from uuid import UUID

from autopost_adapters.base import Held
from autopost_contracts.ids import ChannelId, ClaimToken, DeliveryId, RunId, WorkspaceId
from autopost_contracts.plan import Plan
from autopost_runtime.logs import get_logger
from autopost_runtime.postgres import Database
from msgspec import Raw, Struct, ValidationError, convert, json

NEVER = timedelta(days=365_000)

CLAIM = """
    SELECT c.delivery_id, c.channel_id, c.rendering_id, c.attempt, date_part('epoch', c.slot_at), c.claim_token,
           c.render_meta -> 'series_progress', c.verify, c.trace_id, c.traceparent, date_part('epoch', c.created_at),
           CASE WHEN c.shared IS NOT NULL THEN c.next_due_at END,
           CASE WHEN c.shared IS NOT NULL THEN clock_timestamp() END,
           c.shared
    FROM claim_deliveries($1, $2, $3, $4) AS c"""
"""What the rows have in common comes with the first: read five hundred times it was a third of a claim's cost. A time
comes as a number: to make a datetime of it takes as long as all the rest of a row."""


class Channel(Struct, frozen=True, kw_only=True):
    """Where a delivery goes, and as whom."""

    platform: str
    target_id: str
    auth_ref: str
    rate_group: str
    settings: dict[str, Any] = {}
    pace: float = 0.0
    """Seconds: the least distance between two calls."""


class Shared(Struct, frozen=True, kw_only=True):
    """What the deliveries of a claim have in common."""

    plans: dict[UUID, Raw] | None
    channels: dict[UUID, Channel]


class Claim(Struct, frozen=True):
    """A delivery that is ours to send, until its lease runs out."""

    workspace_id: WorkspaceId
    delivery_id: DeliveryId
    channel_id: ChannelId
    channel: Channel
    plan: Plan | None
    """``None`` when the rendering is gone or cannot be read."""
    attempt: int
    claim_token: ClaimToken
    slot: float
    """Of its first call, as the database knows it: in seconds of the epoch."""
    progress: int
    """How many parts of the plan are acknowledged already."""
    acknowledged: tuple[tuple[str, ...], ...]
    verify: bool
    """The attempt before may have arrived: the platform must be asked before another."""
    trace_id: str | None
    traceparent: str | None
    created: float
    """Seconds of the epoch."""
    claimed_at: datetime

    @property
    def created_at(self) -> datetime:
        return datetime.fromtimestamp(self.created, UTC)

    @property
    def age(self) -> timedelta:
        return self.claimed_at - self.created_at


class Claimed(Struct, frozen=True):
    claims: tuple[Claim, ...]
    next_due_in: timedelta
    now: float = 0.0
    """When it was answered, by the database's clock."""


class Given(Struct, frozen=True):
    """A slot: ``taken``, or to be asked for again when it has come."""

    slot: float
    """As the database knows it: in seconds of the epoch."""
    wait: float
    taken: bool


class Credential(Struct, frozen=True, kw_only=True):
    """Where a secret lies; never the secret."""

    auth_ref: str
    secret_ref: str
    sealed: bytes | None
    bot_id: str | None
    rotated_at: datetime


class Upload(Struct, frozen=True, kw_only=True):
    """What there is to know about a blob before it is sent: the platform's id for it, or where it lies."""

    blob_ref: str
    verdict: Literal["held", "ours", "busy", "missing"]
    provider_id: str | None
    origin_url: str | None
    sha256: str | None
    content_type: str | None
    size_bytes: int | None
    name: str | None


_shared, _plan = json.Decoder(Shared), json.Decoder(Plan)


class Gateway:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def claim_deliveries(self, workspace: WorkspaceId, run_id: RunId, limit: int, lease: timedelta) -> Claimed:
        rows = await self._database.fetch(CLAIM, workspace, run_id, limit, lease)
        if not rows:
            return Claimed((), await self.next_due_in(workspace))
        *_, next_due_at, now, shared = rows[0]
        claims = _claims(workspace, rows, now, _shared.decode(shared))
        return Claimed(claims, _until(next_due_at, now), now.timestamp())

    async def next_due_in(self, workspace: WorkspaceId) -> timedelta:
        row = await self._database.fetchrow("SELECT next_due_at($1) AS due, clock_timestamp() AS now", workspace)
        return NEVER if row is None else _until(row["due"], row["now"])

    async def due_workspaces(self) -> list[tuple[WorkspaceId, timedelta]]:
        rows = await self._database.fetch("SELECT d.*, clock_timestamp() AS now FROM due_workspaces() AS d")
        return [(WorkspaceId(row["workspace_id"]), _until(row["next_due_at"], row["now"])) for row in rows]

    async def read_credential(self, workspace: WorkspaceId, platform: str, auth_ref: str) -> Credential | None:
        row = await self._database.fetchrow(
            "SELECT * FROM read_credentials($1, $2, $3)", workspace, platform, [auth_ref]
        )
        return None if row is None else convert(dict(row), Credential)

    async def record_progress(self, claim: Claim, part: int, provider_ids: Sequence[str]) -> bool:
        """``False`` when the claim is no longer ours."""
        recorded = await self._database.fetchval(
            "SELECT record_progress($1, $2, $3, $4, $5)",
            claim.workspace_id,
            claim.delivery_id,
            claim.claim_token,
            part,
            list(provider_ids),
        )
        return bool(recorded)

    async def take_slot(self, claim: Claim, *, beside: bool, missed: float | None = None) -> Given | None:
        """For the next call of this delivery; ``None`` when the claim is no longer ours.

        ``missed``: the slot that it had and did not use.
        """
        row = await self._database.fetchrow(
            "SELECT date_part('epoch', s.slot_at), date_part('epoch', s.slot_at - clock_timestamp()), s.taken"
            " FROM take_slot($1, $2, $3, p_beside => $4, p_missed => to_timestamp($5)) AS s",
            claim.workspace_id,
            claim.delivery_id,
            claim.claim_token,
            beside,
            missed,
        )
        return None if row is None else Given(*row)

    async def renew_leases(self, workspace: WorkspaceId, claims: Sequence[Claim], lease: timedelta) -> set[DeliveryId]:
        """Those of these claims that are still ours, now for as long as this."""
        rows = await self._database.fetch(
            "SELECT renew_leases($1, $2, $3, $4) AS delivery_id",
            workspace,
            [claim.delivery_id for claim in claims],
            [claim.claim_token for claim in claims],
            lease,
        )
        return {DeliveryId(row["delivery_id"]) for row in rows}

    async def take_uploads(self, claim: Claim, bot_id: str, kinds: Mapping[str, str]) -> list[Upload]:
        rows = await self._database.fetch(
            "SELECT * FROM take_uploads($1, $2, $3, $4, $5, $6, $7)",
            claim.workspace_id,
            claim.delivery_id,
            claim.claim_token,
            claim.channel.platform,
            bot_id,
            list(kinds),
            list(kinds.values()),
        )
        return [convert(dict(row), Upload) for row in rows]

    async def keep_uploads(self, claim: Claim, bot_id: str, held: Mapping[str, tuple[str, Held]]) -> None:
        await self._database.fetch(
            "SELECT keep_uploads($1, $2, $3, $4, $5, $6, $7)",
            claim.workspace_id,
            claim.channel.platform,
            bot_id,
            list(held),
            [kind for kind, _ in held.values()],
            [one.provider_id for _, one in held.values()],
            [one.lifetime for _, one in held.values()],
        )

    async def forget_uploads(self, claim: Claim, bot_id: str, ids: Mapping[str, str]) -> None:
        await self._database.fetch(
            "SELECT forget_uploads($1, $2, $3, $4, $5)",
            claim.workspace_id,
            claim.channel.platform,
            bot_id,
            list(ids),
            list(ids.values()),
        )

    async def commit_deliveries(
        self,
        workspace: WorkspaceId,
        run_id: RunId,
        outcomes: list[dict[str, Any]],
        pause: timedelta,
        disable_streak: int,
    ) -> set[DeliveryId]:
        """Those that came too late: their claim had passed on. All others are committed."""
        rows = await self._database.fetch(
            "SELECT delivery_id FROM commit_deliveries($1, $2, $3, $4, p_run_id => $5) WHERE verdict = 'stale'",
            workspace,
            outcomes,
            pause,
            disable_streak,
            run_id,
        )
        return {DeliveryId(row["delivery_id"]) for row in rows}

    async def commit_sent(
        self,
        workspace: WorkspaceId,
        run_id: RunId,
        ids: Sequence[DeliveryId],
        tokens: Sequence[ClaimToken],
        provider_message_ids: Sequence[str],
    ) -> list[int]:
        """The places of those that cannot go this short way, and must go the other. All others are committed."""
        rows = await self._database.fetch(
            "SELECT commit_sent($1, $2, $3, $4, $5) AS nth", workspace, ids, tokens, provider_message_ids, run_id
        )
        return [row["nth"] - 1 for row in rows]

    async def read_outcomes(
        self, workspace: WorkspaceId, ids: Sequence[DeliveryId], tokens: Sequence[ClaimToken]
    ) -> set[DeliveryId]:
        """Those of these claims that are still open: their commit did not happen."""
        rows = await self._database.fetch("SELECT * FROM read_outcomes($1, $2, $3)", workspace, ids, tokens)
        return {DeliveryId(row["delivery_id"]) for row in rows if row["verdict"] == "open"}

    async def ping(self) -> None:
        await self._database.ping()


def _claims(workspace: WorkspaceId, rows: Iterable[Any], now: datetime, shared: Shared) -> tuple[Claim, ...]:
    plans, channels = _plans(shared.plans or {}), shared.channels
    made = []
    for delivery, channel, rendering, nth, slot, token, progress, verify, trace, parent, born, _, _, _ in rows:
        parts, acknowledged = _progress(progress) if progress else (0, ())
        made.append(
            Claim(  # by place: by name it took seven times as long
                workspace,
                delivery,
                channel,
                channels[channel],
                plans.get(rendering),
                nth,
                token,
                slot,
                parts,
                acknowledged,
                verify,
                trace,
                parent,
                born,
                now,
            )
        )
    return tuple(made)


def _progress(series: Mapping[str, Any]) -> tuple[int, tuple[tuple[str, ...], ...]]:
    """How many parts are acknowledged, and under which ids."""
    acknowledged = tuple(tuple(ids) for ids in series.get("provider_message_ids", ()))
    return len(series.get("sent_items", ())), acknowledged


def _plans(stored: Mapping[UUID, Raw]) -> dict[UUID, Plan]:
    """One that cannot be read is that post's trouble, and not of all that were claimed with it."""
    plans = {}
    for rendering, plan in stored.items():
        try:
            plans[rendering] = _plan.decode(plan)
        except ValidationError as exc:
            get_logger().error("plan.unreadable", rendering_id=str(rendering), error=str(exc))
    return plans


def _until(due: datetime | None, now: datetime) -> timedelta:
    """asyncpg gives ``infinity`` as the last moment there is."""
    return NEVER if due is None or due.year == MAXYEAR else due - now
