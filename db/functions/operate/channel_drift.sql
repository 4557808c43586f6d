-- channel_drift(workspace_id, channel_ids) -> the channels whose counters or due time disagree with their deliveries
--
-- counted, sending   in flight by channel_counters, and by deliveries; null without counters
-- due_was, due       when channel_due has it read, and when that is worthwhile; both null when right
-- misplaced          channel_due has no row, or names another platform, rate group or max_parallel
--
-- Both sides change in one transaction, and this is one statement: what it reports is a fault, not a race. A channel
-- that is read too early is right (the claim finds out); one that is read too late is not.
--
-- Cost     every queue row of the workspace once, no delivery
CREATE OR REPLACE FUNCTION channel_drift(p_workspace_id uuid, p_channel_ids uuid[] DEFAULT NULL)
RETURNS TABLE (
    channel_id uuid,
    counted bigint,
    sending bigint,
    due_was timestamptz,
    due timestamptz,
    misplaced boolean
)
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    WITH live AS MATERIALIZED (
        SELECT q.channel_id,
               count(*) FILTER (WHERE q.status = 'sending') AS sending,
               min(q.due_at) FILTER (WHERE q.status IN ('queued', 'retry')) AS due
        FROM delivery_queue q
        WHERE q.workspace_id = p_workspace_id
          AND (p_channel_ids IS NULL OR q.channel_id = ANY (p_channel_ids))
        GROUP BY q.channel_id
    ), seen AS (
        SELECT c.channel_id,
               started.total - ended.total AS counted,
               coalesce(l.sending, 0) AS sending,
               due.next_due_at AS due_was,
               greatest(channel_opens_at(c, greatest(l.due, clock.now)), c.next_allowed_at) AS due,
               l.due IS NOT NULL AS has_work,
               coalesce(due.waits_for_place, false) AS waits,
               coalesce(l.sending, 0) >= c.max_parallel AS is_full,
               (due.platform, due.rate_group, due.max_parallel)
                   IS DISTINCT FROM (c.platform, c.rate_group, c.max_parallel) AS misplaced,
               clock.now
        FROM (SELECT clock_timestamp() AS now OFFSET 0) AS clock
        CROSS JOIN channels c
        LEFT JOIN live l USING (channel_id)
        LEFT JOIN channel_due due
          ON due.workspace_id = c.workspace_id
         AND due.channel_id = c.channel_id
        LEFT JOIN channel_counters started
          ON started.workspace_id = c.workspace_id
         AND started.channel_id = c.channel_id
         AND started.side = 'started'
        LEFT JOIN channel_counters ended
          ON ended.workspace_id = c.workspace_id
         AND ended.channel_id = c.channel_id
         AND ended.side = 'ended'
        WHERE c.workspace_id = p_workspace_id
          AND (p_channel_ids IS NULL OR c.channel_id = ANY (p_channel_ids))
    ), judged AS (
        SELECT s.*,
               s.has_work
                   AND s.due < 'infinity'
                   AND NOT (s.waits AND s.is_full)
                   AND (s.waits OR coalesce(s.due_was, 'infinity') > greatest(s.due, s.now) + interval '1 second')
                   AS is_late
        FROM seen s
    )
    SELECT j.channel_id, j.counted, j.sending,
           CASE WHEN j.is_late THEN j.due_was END,
           CASE WHEN j.is_late THEN j.due END,
           j.misplaced
    FROM judged j
    WHERE j.counted IS DISTINCT FROM j.sending OR j.is_late OR j.misplaced
$$;
