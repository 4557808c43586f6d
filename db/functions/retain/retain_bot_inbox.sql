-- retain_bot_inbox(keep, limit) -> how many updates of customers that were handled longer ago are deleted
--
-- Locks     bot_inbox by key, SKIP LOCKED
CREATE OR REPLACE FUNCTION retain_bot_inbox(p_keep interval, p_limit int)
RETURNS int
LANGUAGE sql
SECURITY DEFINER SET search_path = public, pg_temp
SET enable_seqscan = off
AS $$
    WITH old AS MATERIALIZED (
        SELECT i.workspace_id, i.provider, i.chat_id, i.provider_message_id
        FROM bot_inbox i
        WHERE i.processed_at < (SELECT clock_timestamp() - p_keep)
        ORDER BY i.processed_at
        LIMIT p_limit
        FOR UPDATE SKIP LOCKED
    ), gone AS (
        DELETE FROM bot_inbox t
        USING old o
        WHERE t.workspace_id = o.workspace_id
          AND t.provider = o.provider
          AND t.chat_id = o.chat_id
          AND t.provider_message_id = o.provider_message_id
        RETURNING 1
    )
    SELECT count(*)::int FROM gone
$$;
