-- count_flight(side, workspace_ids, channel_ids, counts)
--
-- Sends that started or ended in these channels. An end frees a place: a channel that waited for one is due now.
-- A claim declares a channel full only while it holds the channel's 'ended' row, so between the two statements
-- here no claim can slip in with an old count.
--
-- Locks     channel_counters, then channel_due: each by workspace_id and channel_id
CREATE OR REPLACE FUNCTION count_flight(p_side text, p_workspace_ids uuid[], p_channel_ids uuid[], p_counts bigint[])
RETURNS void
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
BEGIN
    IF 0 = ALL (p_counts) THEN
        RETURN;
    END IF;

    WITH held AS MATERIALIZED (
        SELECT c.workspace_id, c.channel_id, n.moved
        FROM unnest(p_workspace_ids, p_channel_ids, p_counts) AS n (workspace_id, channel_id, moved)
        JOIN channel_counters c
          ON c.workspace_id = n.workspace_id
         AND c.channel_id = n.channel_id
         AND c.side = p_side
        WHERE n.moved > 0
        ORDER BY c.workspace_id, c.channel_id
        FOR UPDATE OF c
    )
    UPDATE channel_counters c
    SET total = c.total + h.moved
    FROM held h
    WHERE c.workspace_id = h.workspace_id
      AND c.channel_id = h.channel_id
      AND c.side = p_side;

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
