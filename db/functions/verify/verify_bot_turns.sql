-- verify_bot_turns(workspace_id, after, limit) -> updates of customers with their log lines, replies and conversations
--
-- For `autopost verify`, which runs the updates through the engine again and compares. A chat after the other, in the
-- order in which the updates were handled; the ones that wait come last. It reads what people wrote, so the first page
-- that has something leaves an event.
--
-- place       of the row: `after` of the next page. null: the first page
-- whole       nothing of the chat is forgotten: the inbox still has the update that created it
-- flooded     the update is one too many in its minute: is_flood_notice
-- waits       it is not handled yet
-- logged_at   when it was handled; infinity while it waits
-- log         its line; null where there is none. is_log_due: there must be one, since older lines are kept
-- key         null: a line without an update, which says that an operator gave the chat back
-- must_have_reply   if there was a reply, it is kept: retention has deleted no later change of the chat
-- response    {"plan", …} of the reply
-- state …     of the conversation, in the same snapshot; so it is what the last row of the chat left. null: none is stored
-- Appends     payload_accessed
CREATE OR REPLACE FUNCTION verify_bot_turns(p_workspace_id uuid, p_after jsonb, p_limit int)
RETURNS TABLE (
    place jsonb,
    chat text,
    whole boolean,
    key text,
    kind text,
    at timestamptz,
    provider_ts bigint,
    provider_seq numeric,
    update jsonb,
    flooded boolean,
    waits boolean,
    logged_at timestamptz,
    log jsonb,
    is_log_due boolean,
    must_have_reply boolean,
    response_hash text,
    response jsonb,
    state text,
    context jsonb,
    expires_at timestamptz
)
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
#variable_conflict use_column
DECLARE
    _oldest timestamptz := (SELECT min(l.ts) FROM bot_logs l WHERE l.workspace_id = p_workspace_id);
BEGIN
    RETURN QUERY
    SELECT jsonb_build_array(c.chat_id, r.logged_at, r.provider_ts, r.provider_seq, r.at, r.key),
           chat_token(p_workspace_id, c.chat_id), h.whole, r.key, r.kind, r.at, r.provider_ts, r.provider_seq, r.update, r.flooded,
           r.logged_at = 'infinity', r.logged_at, r.log, r.logged_at >= _oldest AND r.logged_at < 'infinity',
           c.forgotten_seq < coalesce(r.seq, 1), b.response_hash, b.response, s.state, s.context, s.expires_at
    FROM bot_settings o
    JOIN bot_chats c ON c.workspace_id = p_workspace_id
    LEFT JOIN bot_state s
      ON s.workspace_id = p_workspace_id
     AND s.chat_id = c.chat_id
    CROSS JOIN LATERAL (
        SELECT c.forgotten_seq = 0 AND min(i.ts) < c.created_at + interval '1 minute' AS whole
        FROM bot_inbox i
        WHERE i.workspace_id = p_workspace_id
          AND i.provider = o.provider
          AND i.chat_id = c.chat_id
    ) AS h
    CROSS JOIN LATERAL (
        SELECT i.provider_message_id AS key, i.kind, i.ts AS at, coalesce(i.provider_ts, 0) AS provider_ts,
               coalesce(i.provider_seq, 1e20) AS provider_seq, i.update, coalesce(i.processed_at, 'infinity') AS logged_at,
               i.seq, i.ignored IS NOT NULL AS flooded, to_jsonb(l) AS log
        FROM bot_inbox i
        LEFT JOIN bot_logs l
          ON l.workspace_id = p_workspace_id
         AND l.ts = i.processed_at
         AND l.chat_id = i.chat_id
         AND l.meta ->> 'key' = i.provider_message_id
        WHERE i.workspace_id = p_workspace_id
          AND i.provider = o.provider
          AND i.chat_id = c.chat_id
          AND (i.ignored IS NULL OR i.ignored = 'chat_flood' AND (l.id IS NOT NULL OR i.processed_at IS NULL))
        UNION ALL
        SELECT NULL, NULL, l.ts, 0::bigint, 0::numeric, NULL, l.ts, NULL, false, to_jsonb(l)
        FROM bot_logs l
        WHERE l.workspace_id = p_workspace_id
          AND l.chat_id = c.chat_id
          AND l.meta ->> 'outcome' = 'released'
    ) AS r
    LEFT JOIN bot_outbox b
      ON b.workspace_id = p_workspace_id
     AND b.chat_id = c.chat_id
     AND b.inbound_provider_message_id = r.key
    WHERE o.workspace_id = p_workspace_id
      AND (p_after IS NULL
           OR c.chat_id >= p_after ->> 0
              AND (c.chat_id, r.logged_at, r.provider_ts, r.provider_seq, r.at, coalesce(r.key, ''))
                  > (p_after ->> 0, (p_after ->> 1)::timestamptz, (p_after ->> 2)::bigint, (p_after ->> 3)::numeric,
                     (p_after ->> 4)::timestamptz, coalesce(p_after ->> 5, '')))
    ORDER BY c.chat_id, r.logged_at, r.provider_ts, r.provider_seq, r.at, coalesce(r.key, '')
    LIMIT p_limit;
    IF FOUND AND p_after IS NULL THEN
        INSERT INTO events (workspace_id, action, meta)
        VALUES (p_workspace_id, 'payload_accessed', event_meta(NULL, NULL, operator_signature(
            'autopost verify', 'compare the turns of the bot with its log') || '{"what": "verify_bot_turns"}'));
    END IF;
END $$;
