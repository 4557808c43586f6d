-- issue_status_token(token_hash, workspace_id, label, lifetime, operator, reason) -> {"verdict", …}
--
-- The holder of the token may read the status page until it expires. The token itself is never stored.
--
-- Verdicts     issued       with "expires_at"
--              label_taken  a valid token has this label: revoke it, or use another label
--              not_found    no such workspace
-- Appends      auth_rotated: the token by its label. An operator's token has no workspace: its event has the zero id,
--              as an alert of the installation has.
-- Raises       AP010 without operator or reason, AP011 for an invalid hash, label or lifetime.
CREATE OR REPLACE FUNCTION issue_status_token(
    p_token_hash text,
    p_workspace_id uuid,
    p_label text,
    p_lifetime interval,
    p_operator text,
    p_reason text
)
RETURNS jsonb
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
DECLARE
    _signature jsonb := operator_signature(p_operator, p_reason);
    _now timestamptz := clock_timestamp();
BEGIN
    IF coalesce(p_token_hash, '') !~ '^[0-9a-f]{64}$' OR coalesce(btrim(p_label), '') = ''
       OR coalesce(p_lifetime, '0') <= interval '0' THEN
        RAISE EXCEPTION 'a status token needs its sha256 in hex, a label and a lifetime' USING ERRCODE = 'AP011';
    ELSIF p_workspace_id IS NOT NULL
          AND NOT EXISTS (SELECT 1 FROM workspaces w WHERE w.workspace_id = p_workspace_id) THEN
        RETURN jsonb_build_object('verdict', 'not_found');
    END IF;

    UPDATE status_tokens t
    SET revoked_at = t.expires_at
    WHERE t.label = btrim(p_label)
      AND t.revoked_at IS NULL
      AND t.expires_at <= _now; -- expired: its label is free
    INSERT INTO status_tokens (token_hash, workspace_id, label, created_by, reason, expires_at)
    VALUES (p_token_hash, p_workspace_id, btrim(p_label), _signature ->> 'operator', _signature ->> 'reason',
            _now + p_lifetime)
    ON CONFLICT (label) WHERE revoked_at IS NULL DO NOTHING;
    IF NOT FOUND THEN
        RETURN jsonb_build_object('verdict', 'label_taken');
    END IF;

    INSERT INTO events (workspace_id, action, meta)
    VALUES (coalesce(p_workspace_id, '00000000-0000-0000-0000-000000000000'), 'auth_rotated',
            event_meta(NULL, NULL, _signature || jsonb_build_object(
                'status_token', btrim(p_label), 'change', 'issued', 'expires_at', _now + p_lifetime)));
    RETURN jsonb_build_object('verdict', 'issued', 'expires_at', _now + p_lifetime);
END $$;
