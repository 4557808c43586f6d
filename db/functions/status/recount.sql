-- recount(workspace_id) -> what was wrong with channel_counters and channel_due, one row per correction
--
-- The triggers keep both right; this checks it, and repairs other damage: a counter that is too high costs a channel
-- its places for good, a due time that is too late hides its posts. When all is right it locks and writes nothing.
--
-- what         'in_flight', 'due', 'group': with the old value and the new one
-- Locks        channels (only those found wrong), channel_counters, channel_due: each by key. Sends continue meanwhile:
--              a counter is corrected by the difference, never set.
CREATE OR REPLACE FUNCTION recount(p_workspace_id uuid)
RETURNS TABLE (channel_id uuid, what text, was text, is_now text)
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    _suspects uuid[];
    _drift jsonb;
BEGIN
    SELECT array_agg(d.channel_id)
    INTO _suspects
    FROM channel_drift(p_workspace_id) AS d;
    IF _suspects IS NULL THEN
        RETURN;
    END IF;

    -- A call that corrects the same fault at the same time waits here, and finds nothing left.
    PERFORM 1
    FROM channels c
    WHERE c.workspace_id = p_workspace_id
      AND c.channel_id = ANY (_suspects)
    ORDER BY c.channel_id
    FOR NO KEY UPDATE;
    SELECT jsonb_agg(to_jsonb(d))
    INTO _drift
    FROM channel_drift(p_workspace_id, _suspects) AS d;

    INSERT INTO channel_counters (workspace_id, channel_id, side)
    SELECT p_workspace_id, d.channel_id, side
    FROM jsonb_to_recordset(_drift) AS d (channel_id uuid, counted bigint)
    CROSS JOIN unnest('{started,ended}'::text[]) AS side
    WHERE d.counted IS NULL
    ORDER BY d.channel_id
    ON CONFLICT DO NOTHING;

    -- Both totals only grow: too many in flight, and `ended` is raised; too few, and `started` is.
    WITH wrong AS MATERIALIZED (
        SELECT k.channel_id, k.side, abs(d.sending - coalesce(d.counted, 0)) AS missing
        FROM jsonb_to_recordset(_drift) AS d (channel_id uuid, counted bigint, sending bigint)
        JOIN channel_counters k
          ON k.workspace_id = p_workspace_id
         AND k.channel_id = d.channel_id
         AND k.side = CASE WHEN d.sending > coalesce(d.counted, 0) THEN 'started' ELSE 'ended' END
        WHERE d.sending <> coalesce(d.counted, 0)
        ORDER BY k.channel_id
        FOR UPDATE OF k
    )
    UPDATE channel_counters k
    SET total = k.total + w.missing
    FROM wrong w
    WHERE k.workspace_id = p_workspace_id
      AND k.channel_id = w.channel_id
      AND k.side = w.side;

    -- A channel whose places were miscounted is also due now.
    INSERT INTO channel_due AS due (workspace_id, channel_id, platform, rate_group, max_parallel, next_due_at)
    SELECT p_workspace_id, c.channel_id, c.platform, c.rate_group, c.max_parallel, coalesce(d.due, clock_timestamp())
    FROM jsonb_to_recordset(_drift) AS d (channel_id uuid, due timestamptz)
    JOIN channels c
      ON c.workspace_id = p_workspace_id
     AND c.channel_id = d.channel_id
    ORDER BY c.channel_id
    ON CONFLICT (workspace_id, channel_id) DO UPDATE
    SET platform = excluded.platform,
        rate_group = excluded.rate_group,
        max_parallel = excluded.max_parallel,
        next_due_at = least(due.next_due_at, excluded.next_due_at),
        waits_for_place = false;

    RETURN QUERY
    SELECT d.channel_id, w.what, w.was, w.is_now
    FROM jsonb_to_recordset(_drift)
        AS d (channel_id uuid, counted bigint, sending bigint, due_was timestamptz, due timestamptz, misplaced boolean)
    JOIN channels c
      ON c.workspace_id = p_workspace_id
     AND c.channel_id = d.channel_id
    CROSS JOIN LATERAL (
        SELECT 'in_flight', d.counted::text, d.sending::text WHERE d.counted IS DISTINCT FROM d.sending
        UNION ALL
        SELECT 'due', d.due_was::text, d.due::text WHERE d.due IS NOT NULL
        UNION ALL
        SELECT 'group', NULL, c.platform || ' ' || c.rate_group WHERE d.misplaced
    ) AS w (what, was, is_now)
    ORDER BY d.channel_id, w.what;
END $$;
