-- wake_channels(workspace_ids, channel_ids, dues, ended)
--
-- After deliveries have moved: brings each channel forward to when something in it may be claimed (`dues`, infinity for
-- nothing), and makes due at once the one that waited for a place and has sends ended. One statement for both, so that
-- channel_due is locked in one order by everybody who waits for it.
--
-- Locks     channel_due by workspace_id and channel_id
CREATE OR REPLACE FUNCTION wake_channels(
    p_workspace_ids uuid[],
    p_channel_ids uuid[],
    p_dues timestamptz[],
    p_ended bigint[]
)
RETURNS void
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
BEGIN
    WITH wanted AS MATERIALIZED (
        SELECT d.workspace_id, d.channel_id, w.due, w.ended > 0 AND d.waits_for_place AS freed
        FROM unnest(p_workspace_ids, p_channel_ids, p_dues, p_ended) AS w (workspace_id, channel_id, due, ended)
        JOIN channel_due d
          ON d.workspace_id = w.workspace_id
         AND d.channel_id = w.channel_id
        WHERE (w.ended > 0 AND d.waits_for_place)
           OR (d.next_due_at > w.due AND NOT d.waits_for_place)
        ORDER BY d.workspace_id, d.channel_id
        FOR UPDATE OF d
    )
    UPDATE channel_due d
    SET next_due_at = least(d.next_due_at, w.due, CASE WHEN w.freed THEN clock_timestamp() END),
        waits_for_place = d.waits_for_place AND NOT w.freed
    FROM wanted w
    WHERE d.workspace_id = w.workspace_id
      AND d.channel_id = w.channel_id;
END $$;
