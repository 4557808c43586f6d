-- store_turns(workspace_id, turns, provider, chats, answered, run_id, now)
--
-- What turns change beside their replies: the conversation, the log, the inbox and how new the chat's last update is.
-- The step of commit_turns that nothing else calls; only turns of `chats` are written. A turn in `answered` was answered
-- before: its conversation stays as it is, but its update is done and logged.
--
-- Changes   bot_inbox, bot_state, bot_logs, bot_chats
-- Appends   bot_escalated
-- Locks     bot_inbox, bot_state by key; bot_chats are held by the caller
CREATE OR REPLACE FUNCTION store_turns(
    p_workspace_id uuid,
    p_turns jsonb,
    p_provider text,
    p_chats text[],
    p_answered text[],
    p_run_id uuid,
    p_now timestamptz
)
RETURNS void
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
#variable_conflict use_column
BEGIN
    WITH handled AS MATERIALIZED (
        SELECT t ->> 'chat_id' AS chat_id, u ->> 'key' AS key, u -> 'log' AS log, n AS place,
               t ->> 'chat_id' = ANY (p_answered) AS is_answered
        FROM jsonb_array_elements(p_turns) AS t
        CROSS JOIN LATERAL jsonb_array_elements(t -> 'updates') WITH ORDINALITY AS u (u, n)
        WHERE t ->> 'chat_id' = ANY (p_chats)
    ), done AS (
        UPDATE bot_inbox i
        SET processed_at = p_now
        FROM handled h
        WHERE i.workspace_id = p_workspace_id
          AND i.provider = p_provider
          AND i.chat_id = h.chat_id
          AND i.provider_message_id = h.key
          AND i.processed_at IS NULL
        RETURNING i.chat_id, i.provider_message_id AS key, i.trace_id, i.provider_ts, i.provider_seq
    ), logged AS (
        INSERT INTO bot_logs (workspace_id, ts, chat_id, message_text, matched_rule_id, rule_version, state_before,
                              state_after, response_preview, meta)
        SELECT p_workspace_id, p_now, d.chat_id, h.log ->> 'message_text', h.log ->> 'matched_rule_id',
               (h.log ->> 'rule_version')::int, h.log ->> 'state_before', h.log ->> 'state_after',
               h.log ->> 'response_preview',
               h.log -> 'meta' || jsonb_build_object(
                   'key', d.key, 'trace_id', d.trace_id,
                   'idempotency_key', reply_key(p_workspace_id, d.chat_id, d.key),
                   'adapter', jsonb_build_object('platform', p_provider, 'attempt', 1))
               || CASE WHEN h.is_answered THEN '{"outcome": "answered"}'::jsonb ELSE '{}' END
        FROM done d
        JOIN handled h USING (chat_id, key)
        ORDER BY d.chat_id, h.place
    ), newest AS (
        SELECT DISTINCT ON (d.chat_id) d.chat_id, d.provider_ts, d.provider_seq
        FROM done d
        ORDER BY d.chat_id, d.provider_ts DESC NULLS LAST, d.provider_seq DESC NULLS LAST
    )
    UPDATE bot_chats c
    SET last_provider_seq = CASE WHEN n.provider_ts >= coalesce(c.last_provider_ts, n.provider_ts)
                                 THEN n.provider_seq ELSE c.last_provider_seq END,
        last_provider_ts = greatest(c.last_provider_ts, n.provider_ts),
        changed_at = p_now,
        takes = 0
    FROM newest n
    WHERE c.workspace_id = p_workspace_id
      AND c.chat_id = n.chat_id;

    INSERT INTO bot_state AS s (workspace_id, chat_id, state, context, expires_at, updated_at)
    SELECT p_workspace_id, t ->> 'chat_id', t #>> '{next,state}', t #> '{next,context}',
           p_now + make_interval(secs => (t #>> '{next,expires_in}')::double precision), p_now
    FROM jsonb_array_elements(p_turns) AS t
    WHERE t ->> 'chat_id' = ANY (p_chats)
      AND NOT t ->> 'chat_id' = ANY (p_answered)
      AND t -> 'next' <> 'null'
    ON CONFLICT (workspace_id, chat_id) DO UPDATE
    SET state = excluded.state,
        context = excluded.context,
        expires_at = excluded.expires_at,
        updated_at = excluded.updated_at;

    INSERT INTO events (workspace_id, ts, action, meta)
    SELECT p_workspace_id, p_now, 'bot_escalated',
           event_meta(t ->> 'trace_id', p_run_id, jsonb_build_object(
               'chat', chat_token(p_workspace_id, t ->> 'chat_id'), 'code', t #>> '{escalation,code}'))
    FROM jsonb_array_elements(p_turns) AS t
    WHERE t ->> 'chat_id' = ANY (p_chats)
      AND NOT t ->> 'chat_id' = ANY (p_answered)
      AND t -> 'escalation' <> 'null';
END $$;
