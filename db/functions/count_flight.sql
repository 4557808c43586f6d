-- count_flight(side, workspace_ids, channel_ids, counts)
--
-- Sends that started or ended in these channels. Whoever counts an end wakes the channels that waited for a place
-- (wake_channels), in a later statement: a claim declares a channel full only while it holds its 'ended' row, so in
-- between no claim can slip in with an old count.
--
-- Locks     channel_counters by workspace_id and channel_id, which is the order given
CREATE OR REPLACE FUNCTION count_flight(p_side text, p_workspace_ids uuid[], p_channel_ids uuid[], p_counts bigint[])
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
