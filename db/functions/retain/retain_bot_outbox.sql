-- retain_bot_outbox(keep, limit) -> how many replies that were sent or refused longer ago are deleted
--
-- Stays     what is still to be sent, and the reply to an update that the inbox would return again
-- Locks     bot_outbox by key, SKIP LOCKED
CREATE OR REPLACE FUNCTION retain_bot_outbox(p_keep interval, p_limit int)
RETURNS int
LANGUAGE sql
SECURITY DEFINER SET search_path = public, pg_temp
SET enable_seqscan = off
AS $$
    WITH old AS MATERIALIZED (
        SELECT b.workspace_id, b.chat_id, b.inbound_provider_message_id
        FROM bot_outbox b
        WHERE coalesce(b.sent_at, b.failed_at) < (SELECT clock_timestamp() - p_keep)
          AND (b.sent_at IS NOT NULL OR b.failed_at IS NOT NULL)
          AND NOT EXISTS (
              SELECT 1
              FROM bot_inbox i
              WHERE i.workspace_id = b.workspace_id
                AND i.chat_id = b.chat_id
                AND i.provider_message_id = b.inbound_provider_message_id
                AND i.processed_at IS NULL
          )
        ORDER BY coalesce(b.sent_at, b.failed_at)
        LIMIT p_limit
        FOR UPDATE OF b SKIP LOCKED
    ), gone AS (
        DELETE FROM bot_outbox t
        USING old o
        WHERE t.workspace_id = o.workspace_id
          AND t.chat_id = o.chat_id
          AND t.inbound_provider_message_id = o.inbound_provider_message_id
        RETURNING 1
    )
    SELECT count(*)::int FROM gone
$$;
