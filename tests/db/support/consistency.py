"""What must hold between deliveries and the narrow tables beside it, whoever wrote last."""

from typing import Any
from uuid import UUID

from db.support.builders import Executor

COMPLAINTS = """
WITH clock AS (
    SELECT coalesce($2::timestamptz, clock_timestamp()) AS now
), live AS (
    SELECT d.workspace_id, d.delivery_id, d.channel_id, d.status, d.claim_token, d.created_at,
           d.sending_lease_until, d.status IN ('queued', 'retry') AS waiting,
           greatest(d.not_before, d.scheduled_for, CASE WHEN d.status = 'retry' THEN d.next_retry_at END) AS due
    FROM deliveries d
    WHERE d.workspace_id = $1 AND d.status IN ('queued', 'retry', 'claimed', 'sending')
), flight AS (
    SELECT c.channel_id, c.max_parallel,
           (SELECT total FROM channel_counters k
            WHERE k.workspace_id = $1 AND k.channel_id = c.channel_id AND k.side = 'started')
         - (SELECT total FROM channel_counters k
            WHERE k.workspace_id = $1 AND k.channel_id = c.channel_id AND k.side = 'ended') AS counted,
           (SELECT count(*) FROM live l WHERE l.channel_id = c.channel_id AND l.status = 'sending') AS sending
    FROM channels c
    WHERE c.workspace_id = $1
), work AS (
    SELECT c.channel_id,
           greatest(channel_opens_at(c, greatest(min(l.due), clock.now)), c.next_allowed_at) AS claimable_at
    FROM clock, channels c
    JOIN live l ON l.channel_id = c.channel_id AND l.waiting
    WHERE c.workspace_id = $1
    GROUP BY c.workspace_id, c.channel_id, c.*, c.next_allowed_at, clock.now
)
SELECT 'live but not queued: ' || l.delivery_id
FROM live l
WHERE NOT EXISTS (SELECT 1 FROM delivery_queue q WHERE q.workspace_id = $1 AND q.delivery_id = l.delivery_id)
UNION ALL
SELECT 'queued but not live: ' || q.delivery_id
FROM delivery_queue q
WHERE q.workspace_id = $1 AND NOT EXISTS (SELECT 1 FROM live l WHERE l.delivery_id = q.delivery_id)
UNION ALL
SELECT format('queue row of %s %s disagrees: %s', l.status, l.delivery_id, q)
FROM live l
JOIN delivery_queue q ON q.workspace_id = $1 AND q.delivery_id = l.delivery_id
WHERE q.channel_id <> l.channel_id
   OR (q.claim_token IS NULL) <> l.waiting
   OR (l.claim_token IS NOT NULL AND NOT l.waiting AND q.claim_token <> l.claim_token)
   OR (l.status = 'sending' AND q.lease_until IS DISTINCT FROM l.sending_lease_until)
   OR (l.waiting AND q.lease_until IS NOT NULL)
   OR (l.waiting AND q.asleep AND q.sort_at <> l.due)
   OR (l.waiting AND q.due_at <> l.due)
   OR q.status <> l.status
   OR q.by_hand <> (l.status = 'claimed')
   OR (l.waiting AND NOT q.asleep AND q.sort_at < l.created_at)
UNION ALL
SELECT format('%s %s is hidden below the low water of its channel', l.status, l.delivery_id)
FROM live l
JOIN delivery_queue q ON q.workspace_id = $1 AND q.delivery_id = l.delivery_id
JOIN channel_due d ON d.workspace_id = $1 AND d.channel_id = l.channel_id
WHERE l.waiting AND NOT q.asleep AND q.sort_at < d.low_water
UNION ALL
SELECT format('channel %s counts %s in flight, %s are sending', channel_id, counted, sending)
FROM flight
WHERE counted IS DISTINCT FROM sending
UNION ALL
SELECT format('channel %s could be claimed at %s but is due at %s (waits for a place: %s)',
              w.channel_id, w.claimable_at, d.next_due_at, d.waits_for_place)
FROM clock, work w
JOIN flight f USING (channel_id)
LEFT JOIN channel_due d ON d.workspace_id = $1 AND d.channel_id = w.channel_id
WHERE w.claimable_at < 'infinity'
  AND (d.next_due_at IS NULL OR d.next_due_at > greatest(w.claimable_at, clock.now) + interval '5 milliseconds')
  AND NOT (d.waits_for_place AND f.sending >= f.max_parallel)
UNION ALL
SELECT format('channel %s waits for a place but %s of %s are free', d.channel_id, f.max_parallel - f.sending,
              f.max_parallel)
FROM channel_due d
JOIN flight f USING (channel_id)
WHERE d.workspace_id = $1 AND d.waits_for_place AND f.sending < f.max_parallel
UNION ALL
SELECT format('channel_due of %s names %s %s', c.channel_id, d.platform, d.rate_group)
FROM channels c
LEFT JOIN channel_due d ON d.workspace_id = c.workspace_id AND d.channel_id = c.channel_id
WHERE c.workspace_id = $1 AND (d.platform, d.rate_group) IS DISTINCT FROM (c.platform, c.rate_group)
"""

# What a test or the runbook inserts by hand (signed by 'me') may lack both.
ANONYMOUS = """
SELECT format('%s says only %s', action, meta)
FROM events
WHERE workspace_id = $1
  AND NOT meta ?& ARRAY['trace_id', 'run_id']
  AND meta <> '{}'
  AND meta ->> 'operator' IS DISTINCT FROM 'me'
"""


async def anonymous(executor: Executor, workspace: UUID) -> list[str]:
    """Events without a key that every event has, be it null."""
    return [row[0] for row in await executor.fetch(ANONYMOUS, workspace)]


async def complaints(executor: Executor, workspace: UUID, now: Any = None) -> list[str]:
    """Empty when the tables agree. ``now`` for tests that pass their own clock."""
    return [row[0] for row in await executor.fetch(COMPLAINTS, workspace, now)]


async def consistent(executor: Executor, workspace: UUID, now: Any = None) -> bool:
    found = await complaints(executor, workspace, now)
    assert found == []
    return True
