-- retain_bot_state(keep, limit) -> how many conversations whose state expired longer ago are deleted
--
-- A chat without a state starts anew, and so does one whose state has expired.
--
-- Locks     bot_state by key, SKIP LOCKED
CREATE OR REPLACE FUNCTION retain_bot_state(p_keep interval, p_limit int)
RETURNS int
LANGUAGE sql
SECURITY DEFINER SET search_path = public, pg_temp
SET enable_seqscan = off
AS $$
    WITH old AS MATERIALIZED (
        SELECT s.workspace_id, s.chat_id
        FROM bot_state s
        WHERE s.expires_at < (SELECT clock_timestamp() - p_keep)
        ORDER BY s.expires_at
        LIMIT p_limit
        FOR UPDATE SKIP LOCKED
    ), gone AS (
        DELETE FROM bot_state t
        USING old o
        WHERE t.workspace_id = o.workspace_id
          AND t.chat_id = o.chat_id
        RETURNING 1
    )
    SELECT count(*)::int FROM gone
$$;
