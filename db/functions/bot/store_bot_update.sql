-- store_bot_update(workspace_id, endpoint_id, update) -> {"verdict", …}
--
-- Stores one update of a provider in the inbox, at most once. update: {"provider", "chat_id", "key", "kind", "answer",
-- "body", "user_id", "chat_type", "is_bot", "provider_ts", "provider_seq", "trace_id", "traceparent"}.
--
-- Verdicts     stored              also while the workspace is paused: it is answered on resume
--              duplicate           the inbox has it
--              rate_limited        with retry_after_ms; nothing is stored, the provider sends it again
--              workspace_disabled  nothing is stored
--              endpoint_disabled   or deleted: its secret is no longer valid; nothing is stored
-- chat_id      with "stored": the chat it belongs to (dialog_of)
-- answer       with "stored": whether the bot has to answer. What nobody answers is stored as done, with the reason:
--              unknown_kind   of a kind that no bot answers ("answer": false), or without a chat
--              no_bot         the workspace has no bot, or it is switched off
--              bot_sender     written by a bot: two bots would answer each other for ever
--              not_a_dialog   in a group or channel, where the settings do not say so: people there would share a state
--              stopped        the customer stopped the bot, then or later; nothing can be sent
--              chat_flood     over the chat's updates per minute. It passes the gate of the endpoint, so that one
--                             customer does not use up the rate of all others. Of the first one in a minute the bot
--                             tells the customer so (is_flood_notice)
-- seq          with "stored": the number of the change in the chat, where the update is a message that the chat shows
-- Order        provider_ts is the arrival where the provider names no time, or one that is still to come
-- Changes      bot_chats: due_at with the update in one transaction, so whoever looks for more work under the lock of
--              the row sees either the update or the time
-- Appends      ingress_rate_limited, ingress_dedup_dropped; bot_update_ignored for the first in a minute of a chat
-- Locks        ingress_gates, bot_chats, bot_inbox
CREATE OR REPLACE FUNCTION store_bot_update(p_workspace_id uuid, p_endpoint_id uuid, p_update jsonb)
RETURNS jsonb
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
DECLARE
    _endpoint record;
    _gate record;
    _settings bot_settings;
    _chat bot_chats;
    _chat_id text := dialog_of(p_workspace_id, p_update ->> 'chat_id');
    _kind text := p_update ->> 'kind';
    _trace_id text := p_update ->> 'trace_id';
    _provider_ts bigint := least((p_update ->> 'provider_ts')::bigint, -- which ignores null
                                 floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint);
    _ignored text;
    _notice boolean;
    _seq bigint;
    _is_stored boolean;
BEGIN
    SELECT e.ingress_rps, e.enabled, w.status
    INTO _endpoint
    FROM workspace_endpoints e
    JOIN workspaces w USING (workspace_id)
    WHERE e.workspace_id = p_workspace_id
      AND e.endpoint_id = p_endpoint_id;
    IF NOT FOUND OR NOT _endpoint.enabled THEN
        RETURN jsonb_build_object('verdict', 'endpoint_disabled');
    END IF;
    IF _endpoint.status = 'disabled' THEN
        RETURN jsonb_build_object('verdict', 'workspace_disabled');
    END IF;

    SELECT * INTO _settings FROM bot_settings s WHERE s.workspace_id = p_workspace_id AND s.enabled;
    SELECT * INTO _chat FROM bot_chats c WHERE c.workspace_id = p_workspace_id AND c.chat_id = _chat_id;
    IF is_chat_flooded(_chat, _settings.chat_per_minute) THEN
        -- The lock without a token, because the order of locks is the same everywhere.
        PERFORM 1
        FROM ingress_gates g
        WHERE g.workspace_id = p_workspace_id
          AND g.endpoint_id = p_endpoint_id
        FOR UPDATE;
    ELSE
        _gate := take_ingress_tokens(p_workspace_id, p_endpoint_id, _endpoint.ingress_rps, 1);
        IF _gate.passed = 0 THEN
            PERFORM refuse_ingress(p_workspace_id, p_endpoint_id, 'push', 'ingress_rate_limited', 'rate_limited',
                                   jsonb_build_object('code', 'rate_limited'), _trace_id);
            RETURN jsonb_build_object('verdict', 'rate_limited',
                                      'retry_after_ms', ceil(extract(epoch FROM _gate.wait) * 1000));
        END IF;
    END IF;

    -- Looked at before the chat is locked: copies wait for each other at the gate, and the chat must not wait with them.
    _is_stored := is_stored_update(p_workspace_id, _chat_id, p_update);
    IF _chat_id <> '' AND NOT _is_stored THEN
        INSERT INTO bot_chats (workspace_id, chat_id) VALUES (p_workspace_id, _chat_id) ON CONFLICT DO NOTHING;
        SELECT *
        INTO _chat
        FROM bot_chats c
        WHERE c.workspace_id = p_workspace_id
          AND c.chat_id = _chat_id
        FOR NO KEY UPDATE;
        _is_stored := is_stored_update(p_workspace_id, _chat_id, p_update);
    END IF;
    IF NOT _is_stored THEN
        _ignored := why_ignored(_settings, _chat, p_update, _provider_ts);
        _notice := is_flood_notice(_settings, _chat, _ignored);
        IF _chat_id <> '' THEN
            _chat := note_bot_update(_settings, _chat, p_update, _provider_ts, _ignored);
            _seq := CASE WHEN _kind = 'message_created' THEN _chat.seq END;
        END IF;
        INSERT INTO bot_inbox (workspace_id, provider, chat_id, provider_message_id, ts, endpoint_id, kind, update,
                               trace_id, traceparent, user_id, chat_type, provider_ts, provider_seq, ignored,
                               processed_at, seq)
        VALUES (p_workspace_id, p_update ->> 'provider', _chat_id, p_update ->> 'key', clock_timestamp(),
                p_endpoint_id, _kind, p_update -> 'body', _trace_id, p_update ->> 'traceparent',
                p_update ->> 'user_id', p_update ->> 'chat_type', _provider_ts,
                (p_update ->> 'provider_seq')::numeric, _ignored,
                CASE WHEN _ignored IS NOT NULL AND NOT _notice THEN clock_timestamp() END, _seq)
        ON CONFLICT (workspace_id, provider, chat_id, provider_message_id) DO NOTHING;
        IF FOUND THEN
            RETURN jsonb_strip_nulls(jsonb_build_object(
                'verdict', 'stored', 'chat_id', _chat_id, 'answer', _ignored IS NULL OR _notice, 'seq', _seq));
        END IF;
    END IF;

    PERFORM refuse_ingress(p_workspace_id, p_endpoint_id, 'push', 'ingress_dedup_dropped', 'dedup_dropped',
                           jsonb_build_object('code', 'dedup_dropped', 'source_ref', quoted(p_update ->> 'key', 256)),
                           _trace_id);
    RETURN jsonb_build_object('verdict', 'duplicate');
END $$;
