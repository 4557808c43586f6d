-- why_delivery(workspace_id, delivery_ids, now, …) -> for each live delivery of these, the gate that holds it
--
-- Each delivery that is queued, retry, claimed or sending has exactly one row: of all gates that hold it, the first in
-- why_precedence; `later` names the others. A claim takes what is at queued_behind and nothing else: due and open are
-- checked here as in a claim (the queue's own row, and why_channel). An ended delivery has no row: see why_ended.
--
-- gate          of why_channel, and
--               schedule        scheduled_for or not_before is to come
--               retry_backoff   the wait after a failed attempt
--               hold            perhaps sent; an operator decides
--               lease           with a worker; the monitor takes it back after `until`. In a workspace that is not
--                               active it does not, so the answer there is the status of the workspace
--               queued_behind   no gate holds it: cause.behind deliveries of its channel go before it (0: it is next)
-- since, until, released_by, command, cause: as in why_channel; released_by also dispatcher
--
-- Cost          a few probes by key for each delivery and channel; for each that is queued_behind, those before it
CREATE OR REPLACE FUNCTION why_delivery(
    p_workspace_id uuid,
    p_delivery_ids uuid[],
    p_now timestamptz DEFAULT NULL,
    p_tolerance interval DEFAULT '50 milliseconds',
    p_claimed_lease interval DEFAULT '300 seconds'
)
RETURNS TABLE (
    delivery_id uuid,
    channel_id uuid,
    status delivery_status,
    gate text,
    since timestamptz,
    until timestamptz,
    released_by text,
    command text,
    cause jsonb,
    later text[]
)
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    WITH clock AS MATERIALIZED (
        SELECT coalesce(p_now, clock_timestamp()) AS now
    ), live AS MATERIALIZED (
        SELECT d.*, d.status IN ('queued', 'retry') AS waiting,
               CASE d.status
                   WHEN 'sending' THEN coalesce(d.sending_lease_until, '-infinity')
                   WHEN 'claimed' THEN greatest(coalesce(d.claimed_at, '-infinity') + p_claimed_lease, d.not_before)
               END AS lease_until
        FROM (SELECT DISTINCT unnest(p_delivery_ids) AS delivery_id) AS asked
        CROSS JOIN LATERAL (
            SELECT d.delivery_id, d.channel_id, d.status, d.not_before, d.scheduled_for, d.next_retry_at,
                   d.hold_reason, d.last_error, d.claimed_at, d.sending_started_at, d.sending_lease_until,
                   d.created_at, d.updated_at, q.asleep, q.sort_at
            FROM deliveries d
            JOIN delivery_queue q
              ON q.workspace_id = d.workspace_id
             AND q.delivery_id = d.delivery_id
            WHERE d.workspace_id = p_workspace_id
              AND d.delivery_id = asked.delivery_id
              AND d.status IN ('queued', 'retry', 'claimed', 'sending')
            OFFSET 0
        ) AS d
        WHERE sees_workspace(p_workspace_id)
    ), gates AS MATERIALIZED (
        SELECT l.delivery_id, c.gate, c.since, c.until, c.released_by, c.command, c.cause
        FROM clock
        CROSS JOIN why_channel(p_workspace_id, ARRAY(SELECT DISTINCT l.channel_id FROM live l), clock.now, p_tolerance)
            AS c
        JOIN live l USING (channel_id)
        WHERE l.waiting
           OR (c.gate IN ('workspace_paused', 'workspace_disabled') AND l.lease_until < clock.now)
        UNION ALL
        SELECT l.delivery_id, 'schedule', l.created_at, nullif(greatest(l.not_before, l.scheduled_for), 'infinity'),
               'time', NULL, NULL
        FROM clock, live l
        WHERE l.waiting
          AND l.asleep
          AND greatest(l.not_before, l.scheduled_for) > clock.now
        UNION ALL
        SELECT l.delivery_id, CASE WHEN held THEN 'hold' ELSE 'retry_backoff' END, l.updated_at,
               nullif(l.next_retry_at, 'infinity'), CASE WHEN held THEN 'operator' ELSE 'time' END,
               CASE
                   WHEN held AND l.hold_reason IS NULL THEN format(
                       'UPDATE deliveries SET next_retry_at = now() WHERE workspace_id = %L AND delivery_id = %L',
                       p_workspace_id, l.delivery_id)
                   WHEN held THEN format('autopost queue resolve %s resend --workspace %s --reason ''…''',
                                         l.delivery_id, p_workspace_id)
               END,
               jsonb_strip_nulls(jsonb_build_object(
                   'code', l.last_error ->> 'code', 'message', l.last_error ->> 'message',
                   'hold_reason', l.hold_reason))
        FROM clock, live l
        CROSS JOIN LATERAL (SELECT l.next_retry_at = 'infinity') AS h (held)
        WHERE l.status = 'retry'
          AND l.asleep
          AND l.next_retry_at > clock.now
        UNION ALL
        SELECT l.delivery_id, 'lease', coalesce(l.sending_started_at, l.claimed_at),
               CASE WHEN isfinite(l.lease_until) THEN l.lease_until END,
               CASE WHEN l.lease_until < clock.now THEN 'monitor' ELSE 'commit' END,
               CASE WHEN l.lease_until < clock.now
                    THEN format('autopost queue release --workspace %s --reason ''…''', p_workspace_id) END,
               NULL
        FROM clock, live l
        WHERE NOT l.waiting
    ), ranked AS MATERIALIZED (
        SELECT g.*, array_agg(g.gate) OVER held AS names, row_number() OVER held AS place
        FROM gates g
        WINDOW held AS (PARTITION BY g.delivery_id ORDER BY array_position(why_precedence(), g.gate)
                        ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)
    )
    SELECT l.delivery_id, l.channel_id, l.status, r.gate, r.since, r.until, r.released_by, r.command, r.cause,
           r.names[2:]
    FROM live l
    JOIN ranked r
      ON r.delivery_id = l.delivery_id
     AND r.place = 1
    UNION ALL
    SELECT l.delivery_id, l.channel_id, l.status, 'queued_behind',
           delivery_due_at(l.status, l.not_before, l.scheduled_for, l.next_retry_at), NULL, 'dispatcher', NULL,
           jsonb_build_object('behind', line.behind, 'last_claimed_at', (
               SELECT nullif(t.last_claimed_at, '-infinity')
               FROM workspace_due t
               WHERE t.workspace_id = p_workspace_id
           )),
           '{}'
    FROM clock, live l
    CROSS JOIN LATERAL why_behind(p_workspace_id, l.delivery_id, clock.now) AS line (behind)
    WHERE NOT EXISTS (SELECT 1 FROM ranked r WHERE r.delivery_id = l.delivery_id)
$$;
