-- commit_turns(workspace_id, turns, patience, run_id) -> one verdict per turn
--
-- Records how updates were handled: the reply, the conversation, the log and the inbox in one transaction, before
-- anything is sent. All or nothing per turn, set-based for all of them.
--
-- turns        [{"chat_id", "lease_token", "updates": [{"key", "log": {…}}], "next": {"state", "context", "expires_in"},
--              "reply": {"key", "kind", "plan", "plan_hash", "response_hash"}, "escalation": {"code"}}]; expires_in in seconds,
--              next, reply and escalation may be null. "last" of several updates of a chat is the one with the reply
-- Verdicts     committed  the reply is the caller's to send: attempt has begun when slot_at is set; else the chat's own
--                         rate or the group's next slot come first: ask take_reply_slots
--              held       the reply waits, and the chat was given back: the workspace is paused, the platform does not
--                         answer, or the next slot is further away than patience
--              silent     there is no reply; the chat was given back
--              answered   the update has a reply already: nothing is sent; the chat was given back
--              stale      the token is not the current one, or an update is handled: nothing is changed
-- more         there is more to do in the chat now
-- Steps        lock_chats, grant_reply_slots, settle_chats
-- Appends      bot_escalated
-- Locks        platform_limits, bot_chats, bot_inbox, bot_outbox, bot_state: in that order, each by key
CREATE OR REPLACE FUNCTION commit_turns(
    p_workspace_id uuid,
    p_turns jsonb,
    p_patience interval DEFAULT '5 seconds',
    p_run_id uuid DEFAULT NULL
)
RETURNS TABLE (chat_id text, verdict text, reply_id uuid, attempt int, slot_at timestamptz, wait interval, more boolean)
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
    _bot record;
    _chats text[];
    _sending text[];
    _now timestamptz;
    _answered text[];
    _replies text[];
    _more text[];
BEGIN
    SELECT s.provider, s.rate_group, s.auth_ref
    INTO _bot
    FROM bot_settings s
    WHERE s.workspace_id = p_workspace_id;
    IF jsonb_path_exists(p_turns, '$[*].reply ? (@ <> null)') THEN
        PERFORM 1
        FROM platform_limits g
        WHERE g.workspace_id = p_workspace_id
          AND g.platform = _bot.provider
          AND g.rate_group = _bot.rate_group
        FOR UPDATE;
    END IF;
    _chats := lock_chats(
        p_workspace_id,
        ARRAY(SELECT t ->> 'chat_id' FROM jsonb_array_elements(p_turns) AS t),
        ARRAY(SELECT (t ->> 'lease_token')::uuid FROM jsonb_array_elements(p_turns) AS t));
    -- Under the lock: an update that is handled, or that is not there, makes its turn stale.
    _chats := ARRAY(
        SELECT t ->> 'chat_id'
        FROM jsonb_array_elements(p_turns) AS t
        WHERE t ->> 'chat_id' = ANY (_chats)
          AND NOT EXISTS (
              SELECT 1
              FROM jsonb_array_elements(t -> 'updates') AS u
              WHERE NOT EXISTS (
                  SELECT 1
                  FROM bot_inbox i
                  WHERE i.workspace_id = p_workspace_id
                    AND i.provider = _bot.provider
                    AND i.chat_id = t ->> 'chat_id'
                    AND i.provider_message_id = u ->> 'key'
                    AND i.processed_at IS NULL
              )
          )
    );
    _now := clock_timestamp();

    WITH added AS (
        INSERT INTO bot_outbox (workspace_id, chat_id, inbound_provider_message_id, kind, response_hash, plan_hash, response,
                                next_attempt_at, trace_id, traceparent, created_at)
        SELECT p_workspace_id, t ->> 'chat_id', t #>> '{reply,key}',
               coalesce(t #>> '{reply,kind}', 'reply'), t #>> '{reply,response_hash}',
               t #>> '{reply,plan_hash}', jsonb_build_object('plan', t #> '{reply,plan}', 'progress', '[]'::jsonb),
               _now, t ->> 'trace_id', t ->> 'traceparent', _now
        FROM jsonb_array_elements(p_turns) AS t
        WHERE t ->> 'chat_id' = ANY (_chats)
          AND t -> 'reply' <> 'null'
        ON CONFLICT DO NOTHING
        RETURNING bot_outbox.chat_id
    )
    SELECT coalesce(array_agg(a.chat_id), '{}') INTO _replies FROM added a;
    _answered := ARRAY(
        SELECT t ->> 'chat_id'
        FROM jsonb_array_elements(p_turns) AS t
        WHERE t ->> 'chat_id' = ANY (_chats)
          AND t -> 'reply' <> 'null'
          AND NOT t ->> 'chat_id' = ANY (_replies)
    );
    PERFORM store_turns(p_workspace_id, p_turns, _bot.provider, _chats, _answered, p_run_id, _now);
    _sending := grant_reply_slots(p_workspace_id, _replies, p_patience, _now);
    _more := ARRAY(
        SELECT s
        FROM settle_chats(p_workspace_id, ARRAY(SELECT unnest(_chats) EXCEPT SELECT unnest(_sending))) AS s
    );

    RETURN QUERY
    SELECT t ->> 'chat_id',
           CASE
               WHEN NOT t ->> 'chat_id' = ANY (_chats) THEN 'stale'
               WHEN t ->> 'chat_id' = ANY (_answered) THEN 'answered'
               WHEN t ->> 'chat_id' = ANY (_sending) THEN 'committed'
               WHEN t ->> 'chat_id' = ANY (_replies) THEN 'held'
               ELSE 'silent'
           END,
           b.reply_id, b.attempt, b.slot_at, b.slot_at - _now, t ->> 'chat_id' = ANY (_more)
    FROM jsonb_array_elements(p_turns) WITH ORDINALITY AS t (t, place)
    LEFT JOIN LATERAL (
        SELECT b.reply_id, b.attempt, b.slot_at
        FROM bot_outbox b
        WHERE b.workspace_id = p_workspace_id
          AND b.chat_id = t ->> 'chat_id'
          AND b.inbound_provider_message_id = t #>> '{reply,key}'
          AND b.chat_id = ANY (_replies)
    ) AS b ON true
    ORDER BY t.place;
END $$;
