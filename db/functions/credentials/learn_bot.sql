-- learn_bot(workspace_id, platform, auth_ref, rotated_at, bot_id, trace_id) -> 'ours' | 'changed' | 'taken'
--
-- The dispatcher has found out which bot a token belongs to, which was unknown when it was bound.
--
-- ours         stored with the binding. Where another name of this workspace has the bot already, nothing is stored: it
--              is the same tenant's
-- changed      the binding is not the one that was read (rotated_at): nothing is stored, the next use asks again
-- taken        another workspace has the bot. Nothing may be sent with the token here: the channels that use it are
--              paused until an operator binds another token and resumes them. The other workspace is not named
-- Appends      channel_paused per channel that was not paused indefinitely, error code bot_taken
-- Locks        credential_bindings by key, then channels by key
CREATE OR REPLACE FUNCTION learn_bot(
    p_workspace_id uuid,
    p_platform text,
    p_auth_ref text,
    p_rotated_at timestamptz,
    p_bot_id text,
    p_trace_id text DEFAULT NULL
)
RETURNS text
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
DECLARE
    _holder uuid;
    _channels uuid[];
BEGIN
    BEGIN
        UPDATE credential_bindings b
        SET bot_id = p_bot_id,
            updated_at = clock_timestamp()
        WHERE b.workspace_id = p_workspace_id
          AND b.auth_ref = p_auth_ref
          AND b.platform = p_platform
          AND b.rotated_at = p_rotated_at;
        RETURN CASE WHEN FOUND THEN 'ours' ELSE 'changed' END;
    EXCEPTION WHEN unique_violation THEN
        SELECT b.workspace_id
        INTO _holder
        FROM credential_bindings b
        WHERE b.platform = p_platform
          AND b.bot_id = p_bot_id;
    END;
    IF _holder IS NOT DISTINCT FROM p_workspace_id THEN
        RETURN 'ours';
    END IF;

    _channels := ARRAY(
        SELECT c.channel_id
        FROM channels c
        LEFT JOIN channel_auth a USING (workspace_id, channel_id)
        WHERE c.workspace_id = p_workspace_id
          AND c.platform = p_platform
          AND coalesce(a.auth_ref, c.auth_ref) = p_auth_ref
          AND c.paused_until IS DISTINCT FROM 'infinity'
        ORDER BY c.channel_id
        FOR NO KEY UPDATE OF c
    );
    WITH paused AS (
        UPDATE channels c
        SET paused_until = 'infinity',
            updated_at = clock_timestamp()
        WHERE c.workspace_id = p_workspace_id
          AND c.channel_id = ANY (_channels)
        RETURNING c.channel_id
    )
    INSERT INTO events (workspace_id, channel_id, action, result, error, meta)
    SELECT p_workspace_id, p.channel_id, 'channel_paused', 'error',
           jsonb_build_object('code', 'bot_taken', 'scope', 'channel', 'message',
               'this bot is bound in another workspace; a bot belongs to one: bind another token, then resume'),
           event_meta(p_trace_id, NULL, jsonb_build_object(
               'auth_ref', p_auth_ref, 'platform', p_platform, 'paused_until', 'infinity'))
    FROM paused p
    ORDER BY p.channel_id;
    RETURN 'taken';
END $$;
