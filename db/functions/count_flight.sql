-- count_flight(side, workspace_ids, channel_ids, counts)
--
-- Sends that started or ended in these channels. An end frees a place: a channel that waited for one is due now.
-- A claim declares a channel full only while it holds the channel's 'ended' row, so between the two statements
-- here no claim can slip in with an old count.
--
-- Locks     channel_counters, then channel_due: each by workspace_id and channel_id, which is the order given
CREATE OR REPLACE FUNCTION count_flight(p_side text, p_workspace_ids uuid[], p_channel_ids uuid[], p_counts bigint[])
RETURNS void
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
BEGIN
    IF 0 = ALL (p_counts) THEN
        RETURN;
    END IF;

    -- Row by row in the order given: an upsert locks as it goes, and writes each row once.
    INSERT INTO channel_counters AS c (workspace_id, channel_id, side, total)
    SELECT n.workspace_id, n.channel_id, p_side, n.moved
    FROM unnest(p_workspace_ids, p_channel_ids, p_counts) AS n (workspace_id, channel_id, moved)
    WHERE n.moved > 0
    ON CONFLICT (workspace_id, channel_id, side) DO UPDATE
    SET total = c.total + excluded.total;

    IF p_side = 'ended' THEN
        WITH freed AS MATERIALIZED (
            SELECT d.workspace_id, d.channel_id
            FROM unnest(p_workspace_ids, p_channel_ids, p_counts) AS n (workspace_id, channel_id, moved)
            JOIN channel_due d
              ON d.workspace_id = n.workspace_id
             AND d.channel_id = n.channel_id
            WHERE n.moved > 0
              AND d.waits_for_place
            ORDER BY d.workspace_id, d.channel_id
            FOR UPDATE OF d
        )
        UPDATE channel_due d
        SET next_due_at = clock_timestamp(),
            waits_for_place = false
        FROM freed f
        WHERE d.workspace_id = f.workspace_id
          AND d.channel_id = f.channel_id;
    END IF;
END $$;
