-- retain_bot_outbox(keep, limit) -> how many replies that were sent or refused longer ago are deleted
--
-- Stays     what is still to be sent, and the reply to an update that the inbox would return again
--
-- Chats remember up to which number changes were deleted, so that a reader that is further behind reads anew.
--
-- Locks     bot_outbox by key, then bot_chats by key, both SKIP LOCKED: it waits for nobody
CREATE OR REPLACE FUNCTION retain_bot_outbox(p_keep interval, p_limit int)
RETURNS int
LANGUAGE sql
SECURITY DEFINER SET search_path = public, pg_temp
SET enable_seqscan = off
AS $$
    WITH old AS MATERIALIZED (
        SELECT b.workspace_id, b.chat_id, b.seq, b.ctid AS row_place
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
              OFFSET 0 -- by key: a join would read all that is unanswered
          )
        ORDER BY coalesce(b.sent_at, b.failed_at)
        LIMIT p_limit
        FOR UPDATE OF b SKIP LOCKED
    ), chats AS MATERIALIZED (
        SELECT c.workspace_id, c.chat_id, c.row_place
        FROM (
            SELECT DISTINCT o.workspace_id, o.chat_id FROM old o WHERE o.seq IS NOT NULL ORDER BY 1, 2
        ) AS o
        CROSS JOIN LATERAL ( -- each by key, whatever the planner estimates
            SELECT c.workspace_id, c.chat_id, c.ctid AS row_place
            FROM bot_chats c
            WHERE c.workspace_id = o.workspace_id
              AND c.chat_id = o.chat_id
            FOR NO KEY UPDATE SKIP LOCKED
        ) AS c
    ), gone AS (
        DELETE FROM bot_outbox t
        USING old o
        LEFT JOIN chats c USING (workspace_id, chat_id)
        WHERE t.ctid = o.row_place
          AND (o.seq IS NULL OR c.chat_id IS NOT NULL)
        RETURNING t.workspace_id, t.chat_id, t.seq
    ), remembered AS (
        UPDATE bot_chats c
        SET forgotten_seq = greatest(c.forgotten_seq, g.seq)
        FROM (
            SELECT h.row_place, max(g.seq) AS seq
            FROM gone g
            JOIN chats h USING (workspace_id, chat_id)
            WHERE g.seq IS NOT NULL
            GROUP BY h.row_place
        ) AS g
        WHERE c.ctid = g.row_place
    )
    SELECT count(*)::int FROM gone
$$;
