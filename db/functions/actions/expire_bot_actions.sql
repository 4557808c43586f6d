-- expire_bot_actions(workspace_id, max_age, limit) -> the chats, by token, in which actions were ended that nobody ended
-- in time
--
-- An action whose worker died would be shown as under way for ever. It becomes error with "error": "timeout" in its
-- payload. Age counts from the creation: a repeated start keeps no dead action alive. Actions of a workspace that is
-- not active are left alone.
--
-- limit     actions per call, the oldest first, also of one chat: the caller asks again until none is left
-- Appends   bot_action_expired, one per action
-- Locks     bot_chats, SKIP LOCKED: a chat in which something changes now is looked at the next time, and keeps no
--           other from its turn; then bot_actions
CREATE OR REPLACE FUNCTION expire_bot_actions(p_workspace_id uuid, p_max_age interval, p_limit int)
RETURNS TABLE (chat text, expired int, seq bigint)
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_sort = off
SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
#variable_conflict use_column
DECLARE
    _before timestamptz := clock_timestamp() - p_max_age;
    _chats text[];
BEGIN
    SELECT array_agg(DISTINCT c.chat_id)
    INTO _chats
    FROM (
        SELECT c.chat_id
        FROM (
            SELECT a.chat_id
            FROM bot_actions a
            WHERE a.workspace_id = p_workspace_id
              AND a.status = 'processing'
              AND a.created_at < _before
              AND EXISTS (
                  SELECT 1 FROM workspaces w WHERE w.workspace_id = p_workspace_id AND w.status = 'active'
              )
            ORDER BY a.created_at
            OFFSET 0
        ) AS a
        CROSS JOIN LATERAL ( -- each by key, whatever the planner estimates
            SELECT c.chat_id
            FROM bot_chats c
            WHERE c.workspace_id = p_workspace_id
              AND c.chat_id = a.chat_id
            FOR NO KEY UPDATE SKIP LOCKED
        ) AS c
        LIMIT p_limit
    ) AS c;

    -- A statement that starts after the lock: it sees an end that was committed meanwhile, and places do not change.
    RETURN QUERY
    WITH old AS MATERIALIZED (
        SELECT a.place, a.chat_id,
               row_number() OVER (PARTITION BY a.chat_id ORDER BY a.created_at, a.action_id) AS nth
        FROM (
            SELECT a.ctid AS place, a.chat_id, a.action_id, a.created_at
            FROM bot_actions a
            WHERE a.workspace_id = p_workspace_id
              AND a.status = 'processing'
              AND a.created_at < _before
              AND a.chat_id = ANY (_chats)
            ORDER BY a.created_at
            LIMIT p_limit
        ) AS a
    ), advanced AS MATERIALIZED (
        SELECT o.chat_id, o.expired, advance_chat(p_workspace_id, o.chat_id, o.expired) AS seq
        FROM (
            SELECT o.chat_id, count(*)::int AS expired
            FROM old o
            GROUP BY o.chat_id
            ORDER BY o.chat_id
        ) AS o
    ), numbered AS MATERIALIZED (
        SELECT o.place, c.seq - c.expired + o.nth AS seq
        FROM old o
        JOIN advanced c USING (chat_id)
    ), ended AS (
        UPDATE bot_actions a
        SET status = 'error',
            payload = coalesce(a.payload, '{}') || '{"error": "timeout"}',
            updated_at = clock_timestamp(),
            seq = n.seq
        FROM numbered n
        WHERE a.ctid = n.place
        RETURNING a.chat_id, a.action_id, a.action_type, a.created_at
    ), told AS (
        INSERT INTO events (workspace_id, action, result, error, meta)
        SELECT p_workspace_id, 'bot_action_expired', 'error', jsonb_build_object('code', 'timeout'),
               event_meta(NULL, NULL, jsonb_build_object(
                   'chat', chat_token(p_workspace_id, e.chat_id), 'action_type', quoted(e.action_type, 64),
                   'created_at', utc_text(e.created_at)))
        FROM ended e
        ORDER BY e.chat_id, e.action_id
    )
    SELECT chat_token(p_workspace_id, c.chat_id), c.expired, c.seq
    FROM advanced c;
END $$;
