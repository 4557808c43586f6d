-- fold_deliveries(workspace_id, delivery_ids) -> what the events of each delivery add up to
--
-- Reads events alone, in the order of their seq. A checkpoint starts the fold: earlier events are not used, its meta
-- gives {"status", "provider_message_id", "sent_at", "slot_at", "next_retry_at", "skipped", "event_count": as the row
-- has it from then on}, its column the attempt. A delivery without events is left out.
--
-- status, attempt, provider_message_id, sent_at, slot_at, next_retry_at     as the row should have them
-- retry_is_near    a requeue by hand set next_retry_at to about the time of its event
-- began_at         when it was enqueued; null when the log begins with a checkpoint
-- sending_at       when the last attempt was claimed
-- max_attempts     as it was enqueued (5 where the event does not say) or as the last requeue says; five more where a
--                  hand-written statement brought it back; null when the log begins with a checkpoint and no later
--                  event says it
-- skipped          an operator has looked at it since it died
-- parts            the provider's ids part by part, as `sent` has them; null when it does not
-- event_count      how many events the row must have counted: all but those that do not change it, and but a
--                  manual_requeue or a signed dead_letter written by hand, which does not count itself (functions write
--                  a run_id, be it null)
-- problems         faults of the log itself: an event that cannot follow the one before, a gap in the count of
--                  attempts, an event of another message or channel, two with one seq, a time more than a minute before
--                  the last; and what must not happen: see move_problem. At most three
CREATE OR REPLACE FUNCTION fold_deliveries(p_workspace_id uuid, p_delivery_ids uuid[])
RETURNS TABLE (
    delivery_id uuid,
    status delivery_status,
    attempt int,
    provider_message_id text,
    sent_at timestamptz,
    slot_at timestamptz,
    next_retry_at timestamptz,
    retry_is_near boolean,
    began_at timestamptz,
    sending_at timestamptz,
    max_attempts int,
    skipped boolean,
    parts jsonb,
    event_count int,
    message_id uuid,
    channel_id uuid,
    problems text[]
)
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
SET enable_seqscan = off
AS $$
    WITH told AS MATERIALIZED (
        SELECT e.delivery_id, e.seq, e.ts, e.action, e.attempt, e.result, e.error, e.meta, e.message_id, e.channel_id,
               max(e.seq) FILTER (WHERE e.action = 'checkpoint') OVER (PARTITION BY e.delivery_id) AS begins_at
        FROM events e
        WHERE e.workspace_id = p_workspace_id
          AND e.delivery_id = ANY (p_delivery_ids)
          AND e.action NOT IN ('stale_commit', 'payload_accessed')
    ), steps AS MATERIALIZED (
        SELECT t.*,
               coalesce(status_after(t.action), CASE WHEN t.action = 'checkpoint'
                                                     THEN (t.meta ->> 'status')::delivery_status END) AS status
        FROM told t
        WHERE t.begins_at IS NULL OR t.seq >= t.begins_at
    ), moves AS MATERIALIZED (
        SELECT s.*,
               lag(s.status) OVER w AS before,
               lag(s.seq) OVER w AS seq_before,
               lag(s.ts) OVER w AS ts_before,
               lead(s.action) OVER w AS action_after,
               lag(CASE
                   WHEN s.action = 'held' THEN 'infinity'
                   WHEN s.action IN ('retry_scheduled', 'sending_lease_expired') THEN (s.meta ->> 'next_retry_at')::timestamptz
               END) OVER w AS sleeps_until,
               lag(CASE WHEN s.action = 'send_attempt' THEN s.meta ->> 'run_id' END) OVER w AS claimed_by,
               coalesce(first_value(CASE WHEN s.action = 'checkpoint' THEN s.attempt END) OVER w, 0)
                   + count(*) FILTER (WHERE s.action = 'send_attempt') OVER w AS attempts
        FROM steps s
        WHERE s.status IS NOT NULL
        WINDOW w AS (PARTITION BY s.delivery_id ORDER BY s.seq)
    ), budgets AS MATERIALIZED (
        SELECT m.*, count(m.budget) OVER (PARTITION BY m.delivery_id ORDER BY m.seq) AS budgets
        FROM (
            SELECT m.*,
                   CASE
                       WHEN m.action = 'manual_requeue' THEN coalesce(
                           (m.meta ->> 'max_attempts')::int,
                           CASE WHEN m.before IN ('dead', 'failed_permanent') THEN m.attempt + 5 END)
                       WHEN m.action IN ('enqueue', 'validation_failed', 'dedup_suppressed')
                           THEN coalesce((m.meta ->> 'max_attempts')::int, 5)
                   END AS budget
            FROM moves m
        ) AS m
    ), judged AS (
        SELECT m.*,
               CASE
                   WHEN NOT may_follow(m.before, m.action, m.meta ? 'resolved')
                       THEN format('%s %s', m.action, coalesce('when it was ' || m.before, 'as its first event'))
                   WHEN m.attempt <> m.attempts THEN format('%s of attempt %s, not %s', m.action, m.attempt, m.attempts)
                   WHEN m.seq = m.seq_before THEN format('two events with seq %s', m.seq)
                   WHEN m.ts < m.ts_before - interval '1 minute' THEN format('%s before the event before it', m.action)
                   ELSE move_problem(m.action, m.result, m.error, m.ts, m.meta, m.attempt, m.max_attempts, m.sleeps_until,
                                     m.claimed_by, m.action_after)
               END AS problem,
               m.action IN ('sent', 'retry_scheduled', 'held', 'failed_permanent', 'dead_letter', 'checkpoint')
                   AND m.meta ->> 'provider_message_id' IS NOT NULL AS names_message,
               m.action NOT IN ('send_attempt', 'claimed_lease_expired', 'manual_skip') AS sets_retry
        FROM (
            SELECT b.*, max(b.budget) OVER (PARTITION BY b.delivery_id, b.budgets) AS max_attempts
            FROM budgets b
        ) AS m
    ), folded AS (
        SELECT j.delivery_id,
               (array_agg(j.status ORDER BY j.seq DESC))[1] AS status,
               max(j.attempts)::int AS attempt,
               (array_agg(j.meta ->> 'provider_message_id' ORDER BY j.seq DESC) FILTER (WHERE j.names_message))[1]
                   AS provider_message_id,
               max(j.ts) FILTER (WHERE j.action = 'sent') AS sent_at,
               (array_agg((j.meta ->> 'slot_at')::timestamptz ORDER BY j.seq DESC)
                   FILTER (WHERE j.action IN ('send_attempt', 'checkpoint')))[1] AS slot_at,
               (array_agg(CASE
                   WHEN j.action = 'held' THEN 'infinity'
                   WHEN j.action = 'manual_requeue' THEN j.ts
                   WHEN j.action IN ('retry_scheduled', 'sending_lease_expired', 'checkpoint')
                       THEN (j.meta ->> 'next_retry_at')::timestamptz
               END ORDER BY j.seq DESC) FILTER (WHERE j.sets_retry))[1] AS next_retry_at,
               (array_agg(j.action ORDER BY j.seq DESC) FILTER (WHERE j.sets_retry))[1] = 'manual_requeue'
                   AS retry_is_near,
               min(j.ts) FILTER (WHERE j.before IS NULL AND j.action <> 'checkpoint') AS began_at,
               (array_agg(j.ts ORDER BY j.seq DESC) FILTER (WHERE j.action = 'send_attempt'))[1] AS sending_at,
               (array_agg(j.max_attempts ORDER BY j.seq DESC))[1] AS max_attempts,
               (array_agg(j.action = 'manual_skip' OR (j.meta @> '{"skipped": true}' AND j.action = 'checkpoint')
                          ORDER BY j.seq DESC))[1] AS skipped,
               (array_agg(j.meta -> 'parts') FILTER (WHERE j.action = 'sent'))[1] AS parts,
               max((j.meta ->> 'sent_at')::timestamptz) FILTER (WHERE j.action = 'checkpoint') AS sent_before,
               array_agg(j.problem ORDER BY j.seq) FILTER (WHERE j.problem IS NOT NULL) AS problems
        FROM judged j
        GROUP BY j.delivery_id
    ), counted AS (
        SELECT s.delivery_id,
               count(*) FILTER (WHERE s.action <> 'checkpoint'
                                  AND NOT (NOT s.meta ? 'run_id' AND (s.action = 'manual_requeue'
                                           OR (s.action = 'dead_letter' AND s.meta ? 'operator'))))
                   + coalesce(max((s.meta ->> 'event_count')::int) FILTER (WHERE s.action = 'checkpoint'), 0) AS events,
               (array_agg(s.message_id ORDER BY s.seq))[1] AS message_id,
               (array_agg(s.channel_id ORDER BY s.seq))[1] AS channel_id,
               count(DISTINCT (s.message_id, s.channel_id)) > 1 AS mixed
        FROM steps s
        GROUP BY s.delivery_id
    )
    SELECT c.delivery_id, f.status, f.attempt, f.provider_message_id, coalesce(f.sent_at, f.sent_before), f.slot_at,
           f.next_retry_at, coalesce(f.retry_is_near, false), f.began_at, f.sending_at,
           f.max_attempts, coalesce(f.skipped, false), f.parts, c.events::int, c.message_id, c.channel_id,
           (CASE WHEN c.mixed THEN ARRAY['events of more than one message or channel'] ELSE '{}' END
               || coalesce(f.problems, '{}'))[1:3]
    FROM counted c
    LEFT JOIN folded f USING (delivery_id)
$$;
