-- count_in_flight(side, workspace_ids, channel_ids, counts)
--
-- Adds to the counters of sends that started or ended in these channels. A caller that counts ends wakes the channels
-- that wait for a place (wake_channels) in a later statement: a claim declares a channel full only while it holds the
-- 'ended' row, so no claim can use an old count in between.
--
-- Locks     channel_counters by workspace_id and channel_id, in the order given
CREATE OR REPLACE FUNCTION count_in_flight(p_side text, p_workspace_ids uuid[], p_channel_ids uuid[], p_counts bigint[])
RETURNS void
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
BEGIN
    -- Row by row in the order given: an upsert locks as it goes, and writes each row once.
    INSERT INTO channel_counters AS c (workspace_id, channel_id, side, total)
    SELECT n.workspace_id, n.channel_id, p_side, n.moved
    FROM unnest(p_workspace_ids, p_channel_ids, p_counts) AS n (workspace_id, channel_id, moved)
    WHERE n.moved > 0
    ON CONFLICT (workspace_id, channel_id, side) DO UPDATE
    SET total = c.total + excluded.total;
END $$;
