-- store_bot_update(workspace_id, endpoint_id, update) -> {"verdict", …}
--
-- Stores one update of a provider in the inbox, at most once. update: {"provider", "chat_id", "key", "kind", "answer",
-- "body", "trace_id", "traceparent"}; an update that needs no answer ("answer": false) is stored as done.
--
-- Verdicts     stored              also while the workspace is paused: it is answered on resume
--              duplicate           the inbox has it
--              rate_limited        with retry_after_ms; nothing is stored, the provider sends it again
--              workspace_disabled  nothing is stored
--              endpoint_disabled   or deleted: its secret is no longer valid; nothing is stored
-- Appends      ingress_rate_limited, ingress_dedup_dropped
-- seq          with "stored": the number of the change in the chat, where the update is a message that the chat shows
-- Locks        ingress_gates, then bot_inbox and bot_chats: the row of the inbox is new, so nobody waits for it
CREATE OR REPLACE FUNCTION store_bot_update(p_workspace_id uuid, p_endpoint_id uuid, p_update jsonb)
RETURNS jsonb
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
DECLARE
    _endpoint record;
    _gate record;
    _trace_id text := p_update ->> 'trace_id';
    _seq bigint;
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

    _gate := take_ingress_tokens(p_workspace_id, p_endpoint_id, _endpoint.ingress_rps, 1);
    IF _gate.passed = 0 THEN
        PERFORM refuse_ingress(p_workspace_id, p_endpoint_id, 'push', 'ingress_rate_limited', 'rate_limited',
                               jsonb_build_object('code', 'rate_limited'), _trace_id);
        RETURN jsonb_build_object('verdict', 'rate_limited',
                                  'retry_after_ms', ceil(extract(epoch FROM _gate.wait) * 1000));
    END IF;

    INSERT INTO bot_inbox (workspace_id, provider, chat_id, provider_message_id, ts, endpoint_id, kind, update,
                           trace_id, traceparent, processed_at)
    VALUES (p_workspace_id, p_update ->> 'provider', p_update ->> 'chat_id', p_update ->> 'key', clock_timestamp(),
            p_endpoint_id, p_update ->> 'kind', p_update -> 'body', _trace_id, p_update ->> 'traceparent',
            CASE WHEN NOT (p_update ->> 'answer')::boolean THEN clock_timestamp() END)
    ON CONFLICT (workspace_id, provider, chat_id, provider_message_id) DO NOTHING;
    IF NOT FOUND THEN
        PERFORM refuse_ingress(p_workspace_id, p_endpoint_id, 'push', 'ingress_dedup_dropped', 'dedup_dropped',
                               jsonb_build_object('code', 'dedup_dropped',
                                                  'source_ref', quoted(p_update ->> 'key', 256)),
                               _trace_id);
        RETURN jsonb_build_object('verdict', 'duplicate');
    END IF;
    IF p_update ->> 'kind' = 'message_created' THEN
        UPDATE bot_inbox i
        SET seq = advance_chat(p_workspace_id, p_update ->> 'chat_id')
        WHERE i.workspace_id = p_workspace_id
          AND i.provider = p_update ->> 'provider'
          AND i.chat_id = p_update ->> 'chat_id'
          AND i.provider_message_id = p_update ->> 'key'
        RETURNING i.seq INTO _seq;
    END IF;
    RETURN jsonb_strip_nulls(jsonb_build_object('verdict', 'stored', 'seq', _seq));
END $$;
