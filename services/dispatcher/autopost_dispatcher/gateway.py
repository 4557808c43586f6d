"""The dispatcher's database calls: one method per SQL function, no other SQL."""

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Literal
from uuid import UUID

from autopost_adapters.base import Held
from autopost_contracts.ids import ChannelId, ClaimToken, DeliveryId, RunId, WorkspaceId
from autopost_contracts.plan import Plan
from autopost_runtime.lifecycle.pace import RateGroup
from autopost_runtime.lifecycle.probing import Probe
from autopost_runtime.postgres.batches import Batches
from autopost_runtime.postgres.pool import Database
from autopost_runtime.secrets.credentials import Credential
from autopost_runtime.telemetry.logs import get_logger
from msgspec import DecodeError, Raw, Struct, ValidationError, convert, json

NEVER = timedelta(days=365_000)
DAY = 86_400.0
"""Seconds. A due time that is longer ago counts as one day ago."""

_COLUMNS = """
    SELECT c.delivery_id, c.channel_id, c.rendering_id, c.attempt, date_part('epoch', c.slot_at), c.claim_token,
           c.render_meta -> 'series_progress', c.verify, c.trace_id, c.traceparent, date_part('epoch', c.created_at),
           c.render_meta -> 'publication',
           CASE WHEN c.shared IS NOT NULL THEN date_part('epoch', c.next_due_at) END,
           CASE WHEN c.shared IS NOT NULL THEN clock_timestamp() END,
           c.shared
    FROM"""
CLAIM = f"{_COLUMNS} claim_deliveries($1, $2, $3, $4) AS c"
TRIAL = f"{_COLUMNS} claim_trial($1, $2, $3, $4, $5) AS c"
"""Values shared by all rows are in the first row only: decoding them in each row took a third of the claim. Times are
numbers: decoding one as a datetime takes as long as the rest of the row."""


CLAIM_DUE = """
    SELECT c.delivery_id, c.channel_id, c.rendering_id, c.attempt, date_part('epoch', c.slot_at), c.claim_token,
           c.render_meta -> 'series_progress', c.verify, c.trace_id, c.traceparent, date_part('epoch', c.created_at),
           c.render_meta -> 'publication',
           c.workspace_id,
           CASE WHEN c.shared IS NOT NULL THEN clock_timestamp() END,
           c.shared
    FROM claim_due($1, $2, $3, $4, $5, $6) AS c"""


class Channel(Struct, frozen=True, kw_only=True):
    """The target of a delivery, and the credential for it."""

    platform: str
    target_id: str
    auth_ref: str
    rate_group: str
    settings: dict[str, Any] = {}
    pace: float = 0.0
    """Seconds: the minimum interval between two calls."""


class Shared(Struct, frozen=True, kw_only=True):
    """Plans and channels shared by the deliveries of a claim, by workspace: an id is unique in its workspace only."""

    plans: dict[UUID, dict[UUID, Raw]] | None
    channels: dict[UUID, dict[UUID, Channel]]


class Look(Struct, frozen=True):
    """What a claim over many workspaces says about one of them."""

    due_in: float | None
    """Seconds until another claim is worthwhile; ``None`` for never."""
    looked: bool
    """A channel was looked at."""
    alone: bool
    """Left out: only a claim in this workspace alone can end its pauses."""


class SharedByMany(Struct, frozen=True):
    workspaces: dict[UUID, Look] | None
    shared: Shared | None


class PublicationFacts(Struct, frozen=True, kw_only=True):
    """What the metrics say of a publication."""

    media_type: str
    scheduled_at: float
    """Seconds since the epoch."""


class Claim(Struct, frozen=True):
    """A delivery that this process may send until its lease expires."""

    workspace_id: WorkspaceId
    delivery_id: DeliveryId
    channel_id: ChannelId
    channel: Channel
    plan: Plan | None
    """``None`` when the rendering is missing or cannot be read."""
    attempt: int
    claim_token: ClaimToken
    slot: float
    """The slot of its first call by the clock of the database, in seconds since the epoch."""
    progress: int
    """The number of parts of the plan that the platform has accepted."""
    acknowledged: tuple[tuple[str, ...], ...]
    verify: bool
    """The previous attempt may have arrived: search for it on the platform before sending again."""
    trace_id: str | None
    traceparent: str | None
    created: float
    """Seconds since the epoch."""
    claimed_at: datetime
    publication: PublicationFacts | None = None
    """``None``: it is of a post."""

    @property
    def group(self) -> RateGroup:
        return (self.workspace_id, self.channel.platform, self.channel.rate_group)

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
    """The time of the answer, by the clock of the database."""


class ClaimedDue(Struct, frozen=True):
    claims: tuple[Claim, ...]
    looks: dict[UUID, Look]
    now: float
    """The time of the answer, by the clock of the database."""


class SlotGrant(Struct, frozen=True):
    """A slot: ``taken``, or to be requested again after ``wait`` seconds."""

    slot: float
    """By the clock of the database, in seconds since the epoch."""
    wait: float
    taken: bool


class NextCall(Struct, frozen=True):
    """A call that needs a slot: see ``Gateway.take_slot``."""

    claim: Claim
    group_only: bool
    missed: float | None


class AcceptedBy(Struct, frozen=True):
    """A part of a delivery that the platform has accepted."""

    claim: Claim
    part: int
    provider_ids: Sequence[str]


class UploadState(Struct, frozen=True, kw_only=True):
    """The state of a blob before it is sent: the platform's id of it, or where its bytes are stored."""

    blob_ref: str
    verdict: Literal["held", "ours", "busy", "missing"]
    provider_id: str | None
    origin_url: str | None
    sha256: str | None
    content_type: str | None
    size_bytes: int | None
    name: str | None


NO_PLANS: dict[UUID, Plan] = {}

_shared, _shared_by_many, _plan = json.Decoder(Shared), json.Decoder(SharedByMany), json.Decoder(Plan)


class Gateway:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._slots = Batches(self._take_slots, _group_of, _tenant_of)
        self._progress = Batches(self._record_progress, _delivery_of, _tenant_of)

    async def claim_deliveries(self, workspace: WorkspaceId, run_id: RunId, limit: int, lease: timedelta) -> Claimed:
        rows = await self._database.fetch(CLAIM, workspace, run_id, limit, lease)
        if not rows:
            return Claimed((), await self.next_due_in(workspace))
        *_, next_due_at, now, shared = rows[0]
        claims = _claims(((workspace, row) for row in rows), now, _shared.decode(shared))
        return Claimed(claims, _until(next_due_at, now.timestamp()), now.timestamp())

    async def claim_due(
        self,
        workspaces: Sequence[WorkspaceId],
        run_id: RunId,
        limit: int,
        most: int,
        lease: timedelta,
        tolerance: timedelta,
    ) -> ClaimedDue:
        """What is due in these workspaces: up to ``limit`` deliveries of each, and up to ``most`` together."""
        header, *rows = await self._database.fetch(CLAIM_DUE, workspaces, run_id, limit, most, lease, tolerance)
        *_, now, told = header
        many = _shared_by_many.decode(told)
        claims = _claims(((row[12], row) for row in rows), now, many.shared) if many.shared else ()
        return ClaimedDue(claims, many.workspaces or {}, now.timestamp())

    async def next_due_in(self, workspace: WorkspaceId) -> timedelta:
        row = await self._database.fetchrow(
            "SELECT date_part('epoch', next_due_at($1)), date_part('epoch', clock_timestamp())", workspace
        )
        return NEVER if row is None else _until(*row)

    async def due_workspaces(self) -> list[tuple[WorkspaceId, timedelta]]:
        rows = await self._database.fetch(
            "SELECT d.workspace_id, date_part('epoch', d.next_due_at), date_part('epoch', clock_timestamp())"
            " FROM due_workspaces() AS d"
        )
        return [(WorkspaceId(workspace), _until(due, now)) for workspace, due, now in rows]

    async def read_credential(self, workspace: WorkspaceId, platform: str, auth_ref: str) -> Credential | None:
        row = await self._database.fetchrow(
            "SELECT * FROM read_credentials($1, $2, $3)", workspace, platform, [auth_ref]
        )
        return None if row is None else convert(dict(row), Credential)

    async def learn_bot(self, claim: Claim, rotated_at: datetime, bot_id: str) -> Literal["ours", "changed", "taken"]:
        """Store the bot of the claim's token; ``taken``: the bot belongs to another workspace."""
        verdict: Literal["ours", "changed", "taken"] = await self._database.fetchval(
            "SELECT learn_bot($1, $2, $3, $4, $5, $6)",
            claim.workspace_id,
            claim.channel.platform,
            claim.channel.auth_ref,
            rotated_at,
            bot_id,
            claim.trace_id,
        )
        return verdict

    async def record_progress(self, claim: Claim, part: int, provider_ids: Sequence[str]) -> bool:
        """``False`` when the claim is no longer valid."""
        return await self._progress.ask(AcceptedBy(claim, part, provider_ids))

    async def take_slot(self, claim: Claim, *, group_only: bool, missed: float | None = None) -> SlotGrant | None:
        """A slot for the next call of this delivery; ``None`` when the claim is no longer valid.

        ``group_only``: the call counts for its rate group and puts nothing into the channel. ``missed``: the slot that
        was not used.
        """
        return await self._slots.ask(NextCall(claim, group_only, missed))

    async def _record_progress(self, parts: list[AcceptedBy]) -> list[bool]:
        recorded: list[bool] = await self._database.fetchval(
            "SELECT record_progress_across($1, $2, $3, $4, $5)",
            [one.claim.workspace_id for one in parts],
            [one.claim.delivery_id for one in parts],
            [one.claim.claim_token for one in parts],
            [one.part for one in parts],
            [list(one.provider_ids) for one in parts],
        )
        return recorded

    async def _take_slots(self, calls: list[NextCall]) -> list[SlotGrant | None]:
        rows = await self._database.fetch(
            "SELECT s.nth, date_part('epoch', s.slot_at), date_part('epoch', s.slot_at - clock_timestamp()), s.taken"
            " FROM take_slots($1, $2, $3, $4,"
            " ARRAY(SELECT to_timestamp(m.at) FROM unnest($5::float8[]) WITH ORDINALITY AS m (at, nth) ORDER BY m.nth)"
            ") AS s",
            [one.claim.workspace_id for one in calls],
            [one.claim.delivery_id for one in calls],
            [one.claim.claim_token for one in calls],
            [one.group_only for one in calls],
            [one.missed for one in calls],
        )
        granted = {nth: SlotGrant(slot, wait, taken) for nth, slot, wait, taken in rows}
        return [granted.get(nth) for nth in range(1, len(calls) + 1)]

    async def end_upload(self, claim: Claim) -> None:
        await self._database.fetch("SELECT end_upload($1, $2)", claim.workspace_id, claim.channel_id)

    async def renew_leases(self, workspace: WorkspaceId, claims: Sequence[Claim], lease: timedelta) -> set[DeliveryId]:
        """Renew the leases of claims that are still valid, and return their ids."""
        rows = await self._database.fetch(
            "SELECT renew_leases($1, $2, $3, $4) AS delivery_id",
            workspace,
            [claim.delivery_id for claim in claims],
            [claim.claim_token for claim in claims],
            lease,
        )
        return {DeliveryId(row["delivery_id"]) for row in rows}

    async def take_uploads(self, claim: Claim, bot_id: str, kinds: Mapping[str, str]) -> list[UploadState]:
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
        return [convert(dict(row), UploadState) for row in rows]

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
        """Returns the stale deliveries: their claims are no longer valid. All others are committed."""
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
        """Returns the indexes of outcomes that need ``commit_deliveries``. All others are committed."""
        rows = await self._database.fetch(
            "SELECT commit_sent($1, $2, $3, $4, $5) AS nth", workspace, ids, tokens, provider_message_ids, run_id
        )
        return [row["nth"] - 1 for row in rows]

    async def commit_sent_across(
        self,
        run_id: RunId,
        workspaces: Sequence[WorkspaceId],
        ids: Sequence[DeliveryId],
        tokens: Sequence[ClaimToken],
        provider_message_ids: Sequence[str],
    ) -> tuple[list[int], dict[WorkspaceId, float]]:
        """Returns the indexes of outcomes that are not committed, and in how many seconds the channels of the others
        have something to claim again, by workspace.
        """
        [row] = await self._database.fetch(
            "SELECT unsettled, workspaces, dues FROM commit_sent_across($1, $2, $3, $4, $5)",
            workspaces,
            ids,
            tokens,
            provider_message_ids,
            run_id,
        )
        unsettled, within, dues = row
        return (
            [nth - 1 for nth in unsettled],
            dict(zip(within or (), dues or (), strict=True)),
        )

    async def read_outcomes(
        self, workspace: WorkspaceId, ids: Sequence[DeliveryId], tokens: Sequence[ClaimToken]
    ) -> set[DeliveryId]:
        """Returns the deliveries whose claims are still open: their commit did not happen."""
        rows = await self._database.fetch("SELECT * FROM read_outcomes($1, $2, $3)", workspace, ids, tokens)
        return {DeliveryId(row["delivery_id"]) for row in rows if row["verdict"] == "open"}

    async def publication_error_type(self, code: str) -> str:
        return str(await self._database.fetchval("SELECT publication_error_type($1)", code))

    async def adopt_policy(
        self,
        max_attempts: int,
        backoff_base: timedelta,
        backoff_cap: timedelta,
        group_cooldown: timedelta,
        probe_base: timedelta,
        probe_cap: timedelta,
    ) -> dict[str, Any] | None:
        query = "SELECT adopt_policy($1, $2, $3, $4, $5, $6)"
        before = await self._database.fetchval(
            query, max_attempts, backoff_base, backoff_cap, group_cooldown, probe_base, probe_cap
        )
        return None if before is None else dict(before)

    async def give_back_claims(
        self, workspace: WorkspaceId, run_id: RunId, known: Sequence[ClaimToken], younger_than: timedelta
    ) -> int:
        """Release the claims of a call whose answer was lost: no worker has them, so nothing was sent."""
        return int(
            await self._database.fetchval(
                "SELECT give_back_claims($1, $2, $3, $4)", workspace, run_id, known, younger_than
            )
        )

    async def take_probes(self) -> list[Probe]:
        rows = await self._database.fetch("SELECT * FROM take_probes()")
        return [convert(dict(row), Probe) for row in rows]

    async def record_probe(self, probe: Probe, probe_at: datetime, error: dict[str, Any] | None) -> str | None:
        """The circuit after it; ``None`` when this probe counts no more."""
        circuit: str | None = await self._database.fetchval(
            "SELECT record_probe($1, $2, $3, $4, $5, $6)::text",
            probe.workspace_id,
            probe.platform,
            probe.rate_group,
            probe_at,
            error is None,
            error,
        )
        return circuit

    async def claim_trial(self, probe: Probe, run_id: RunId, lease: timedelta) -> Claimed:
        """At most one delivery."""
        workspace = probe.workspace_id
        rows = await self._database.fetch(TRIAL, workspace, probe.platform, probe.rate_group, run_id, lease)
        if not rows:
            return Claimed((), NEVER)
        *_, now, shared = rows[0]
        claims = _claims(((workspace, row) for row in rows), now, _shared.decode(shared))
        return Claimed(claims, NEVER, now.timestamp())

    async def stall_groups(self, groups: Collection[tuple[UUID, str, str]], lasts: timedelta) -> None:
        workspaces, platforms, rate_groups = zip(*groups, strict=True)
        await self._database.execute(
            "SELECT stall_groups($1, $2, $3, $4)", list(workspaces), list(platforms), list(rate_groups), lasts
        )

    async def set_aside(self, workspace: UUID, work: str, failures: int, wait: timedelta, error: str) -> None:
        await self._database.execute("SELECT set_aside($1, $2, $3, $4, $5)", workspace, work, failures, wait, error)

    async def ping(self) -> None:
        """Passes when the database answers and can write."""
        await self._database.ping("SELECT check_writes()")


def _group_of(call: NextCall) -> Hashable:
    return call.claim.group


def _delivery_of(part: AcceptedBy) -> Hashable:
    return (part.claim.workspace_id, part.claim.delivery_id)


def _tenant_of(request: NextCall | AcceptedBy) -> Hashable:
    return request.claim.workspace_id


def _claims(rows: Iterable[tuple[WorkspaceId, Any]], now: datetime, shared: Shared) -> tuple[Claim, ...]:
    plans = {workspace: _plans(stored) for workspace, stored in (shared.plans or {}).items()}
    channels = shared.channels
    made = []
    for workspace, row in rows:
        delivery, channel, rendering, nth, slot, token, progress, verify, trace, parent, born, about, *_ = row
        parts, acknowledged = _progress(progress) if progress else (0, ())
        plan = plans.get(workspace, NO_PLANS).get(rendering) if parts >= 0 else None
        made.append(
            Claim(  # positional: keyword arguments took seven times as long
                workspace,
                delivery,
                channel,
                channels[workspace][channel],
                plan,
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
                _publication(about) if about else None,
            )
        )
    return tuple(made)


def _publication(about: Any) -> PublicationFacts | None:
    """Facts that cannot be read cost the metrics, not the claim."""
    try:
        return convert(about, PublicationFacts)
    except ValidationError:
        return None


def _progress(series: Mapping[str, Any]) -> tuple[int, tuple[tuple[str, ...], ...]]:
    """The number of accepted parts and their message ids; -1 when the series cannot be read."""
    try:
        acknowledged = tuple(tuple(ids) for ids in series.get("provider_message_ids", ()))
        return len(series.get("sent_items", ())), acknowledged
    except (AttributeError, TypeError):
        return -1, ()


def _plans(stored: Mapping[UUID, Raw]) -> dict[UUID, Plan]:
    """A plan that cannot be decoded fails its own post only, not the whole claim."""
    plans = {}
    for rendering, plan in stored.items():
        try:
            plans[rendering] = _plan.decode(plan)
        except (DecodeError, RecursionError) as exc:
            get_logger().error("plan.unreadable", rendering_id=str(rendering), error=str(exc))
    return plans


def _until(due: float | None, now: float) -> timedelta:
    """Computed in seconds since the epoch: a time outside Python's datetime range would fail the whole claim."""
    return NEVER if due is None or due - now >= NEVER.total_seconds() else timedelta(seconds=max(due - now, -DAY))
