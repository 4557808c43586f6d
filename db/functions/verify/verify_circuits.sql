-- verify_circuits(workspace_id, after_ts, after_id, last_ts, last_id)
-- -> claims of a page of events in rate groups whose circuit was not closed
--
-- kind   circuit   by the log the circuit of the rate group was open then, or half, and this is not its trial; checked
--                  for the last hour, and since the channel has been in its rate group
CREATE OR REPLACE FUNCTION verify_circuits(
    p_workspace_id uuid,
    p_after_ts timestamptz,
    p_after_id uuid,
    p_last_ts timestamptz,
    p_last_id uuid
)
RETURNS TABLE (kind text, event_id uuid, delivery_id uuid, channel_id uuid, told text, found text)
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
SET enable_seqscan = off
AS $$
    WITH taken AS MATERIALIZED (
        SELECT s.* FROM send_attempts(p_workspace_id, p_after_ts, p_after_id, p_last_ts, p_last_id) AS s
    ), circuits AS MATERIALIZED (
        SELECT e.ts, e.seq, e.action, e.meta ->> 'platform' AS platform, e.meta ->> 'rate_group' AS rate_group
        FROM (SELECT min(t.ts) AS first_ts FROM taken t) AS t
        CROSS JOIN LATERAL (
            SELECT e.ts, e.seq, e.action, e.meta
            FROM events e
            WHERE e.workspace_id = p_workspace_id
              AND e.ts > t.first_ts - interval '1 hour'
              AND e.ts <= p_last_ts
              AND e.action IN ('group_opened', 'group_closed')
        ) AS e
    )
    SELECT 'circuit', t.id, t.delivery_id, t.channel_id,
           format('group %s of %s opened %s', c.rate_group, c.platform, before.ts), t.ts::text
    FROM taken t
    JOIN channels c
      ON c.workspace_id = p_workspace_id
     AND c.channel_id = t.channel_id
    CROSS JOIN LATERAL ( -- in the order of the lock of the group, which both held
        SELECT k.ts, k.action
        FROM circuits k
        WHERE k.platform = c.platform
          AND k.rate_group = c.rate_group
          AND k.seq < t.seq
        ORDER BY k.seq DESC
        LIMIT 1
    ) AS before
    WHERE NOT t.is_trial
      AND t.ts > c.rate_since
      AND before.action = 'group_opened'
$$;
