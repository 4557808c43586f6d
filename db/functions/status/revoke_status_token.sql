-- revoke_status_token(label, operator, reason) -> {"verdict"}
--
-- The token is invalid from the next request on.
--
-- Verdicts     revoked, not_found: no valid token has this label
-- Appends      auth_rotated; of the operator's token under the zero id, as issue_status_token
-- Raises       AP010 without operator or reason.
CREATE OR REPLACE FUNCTION revoke_status_token(p_label text, p_operator text, p_reason text)
RETURNS jsonb
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
DECLARE
    _signature jsonb := operator_signature(p_operator, p_reason);
    _workspace_id uuid;
BEGIN
    UPDATE status_tokens t
    SET revoked_at = clock_timestamp(),
        revoked_by = _signature ->> 'operator',
        revoked_reason = _signature ->> 'reason'
    WHERE t.label = btrim(p_label)
      AND t.revoked_at IS NULL
    RETURNING t.workspace_id INTO _workspace_id;
    IF NOT FOUND THEN
        RETURN jsonb_build_object('verdict', 'not_found');
    END IF;
    INSERT INTO events (workspace_id, action, meta)
    VALUES (coalesce(_workspace_id, '00000000-0000-0000-0000-000000000000'), 'auth_rotated',
            event_meta(NULL, NULL, _signature || jsonb_build_object(
                'status_token', btrim(p_label), 'change', 'revoked')));
    RETURN jsonb_build_object('verdict', 'revoked');
END $$;
