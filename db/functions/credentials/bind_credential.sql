-- bind_credential(workspace_id, platform, auth_ref, secret_ref, sealed, bot_id, operator, reason) -> {"verdict", …}
--
-- Stores where the secret of a credential is from now on: 'env:NAME', 'file:PATH', or 'sealed' with its ciphertext.
-- Channels that name the credential follow without a change. bot_id is null when it is unknown; the bot_id of the old
-- secret is not kept, because the new one may belong to another bot.
--
-- Verdicts     bound        the name was new
--              rotated      with "old_secret_ref"
--              bot_bound    the same bot is already bound here, as "auth_ref": bind that name again instead
--              bot_taken    the same bot is bound in another workspace, which is not named
--              not_found    no such workspace
-- Appends      auth_rotated with the name and where the secret is; never the secret or its ciphertext
-- Locks        credential_bindings by key
-- Raises       AP010 without operator or reason, AP011 for an invalid name, place or ciphertext.
CREATE OR REPLACE FUNCTION bind_credential(
    p_workspace_id uuid,
    p_platform text,
    p_auth_ref text,
    p_secret_ref text,
    p_sealed bytea,
    p_bot_id text,
    p_operator text,
    p_reason text
)
RETURNS jsonb
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
DECLARE
    _signature jsonb := operator_signature(p_operator, p_reason);
    _old_secret_ref text;
    _holder record;
BEGIN
    IF coalesce(p_platform, '') = '' OR coalesce(p_auth_ref, '') = '' OR p_bot_id = '' THEN
        RAISE EXCEPTION 'a credential needs a platform and an auth_ref; bot_id is null when it is not known'
            USING ERRCODE = 'AP011';
    END IF;
    IF NOT EXISTS (SELECT 1 FROM workspaces w WHERE w.workspace_id = p_workspace_id) THEN
        RETURN jsonb_build_object('verdict', 'not_found');
    END IF;

    SELECT b.secret_ref
    INTO _old_secret_ref
    FROM credential_bindings b
    WHERE b.workspace_id = p_workspace_id
      AND b.auth_ref = p_auth_ref
      AND b.platform = p_platform
    FOR UPDATE;

    BEGIN
        INSERT INTO credential_bindings (workspace_id, auth_ref, platform, secret_ref, sealed, bot_id)
        VALUES (p_workspace_id, p_auth_ref, p_platform, p_secret_ref, p_sealed, p_bot_id)
        ON CONFLICT (workspace_id, auth_ref, platform) DO UPDATE
        SET secret_ref = excluded.secret_ref,
            sealed = excluded.sealed,
            bot_id = excluded.bot_id,
            rotated_at = excluded.rotated_at,
            updated_at = excluded.updated_at;
    EXCEPTION
        WHEN unique_violation THEN
            SELECT b.workspace_id, b.auth_ref
            INTO _holder
            FROM credential_bindings b
            WHERE b.platform = p_platform
              AND b.bot_id = p_bot_id;
            RETURN CASE _holder.workspace_id
                WHEN p_workspace_id THEN jsonb_build_object('verdict', 'bot_bound', 'auth_ref', _holder.auth_ref)
                ELSE jsonb_build_object('verdict', 'bot_taken')
            END;
        WHEN check_violation OR not_null_violation THEN
            RAISE EXCEPTION 'the place of a secret must be env:NAME, file:PATH, or sealed with the sealed secret'
                USING ERRCODE = 'AP011';
    END;

    INSERT INTO events (workspace_id, action, meta)
    VALUES (p_workspace_id, 'auth_rotated', event_meta(NULL, NULL, _signature || jsonb_build_object(
        'platform', p_platform, 'auth_ref', p_auth_ref,
        'old_secret_ref', _old_secret_ref, 'new_secret_ref', p_secret_ref)));

    RETURN jsonb_strip_nulls(jsonb_build_object(
        'verdict', CASE WHEN _old_secret_ref IS NULL THEN 'bound' ELSE 'rotated' END,
        'old_secret_ref', _old_secret_ref));
END $$;
