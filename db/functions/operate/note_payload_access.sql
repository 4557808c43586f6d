-- note_payload_access(workspace_id, ref, operator, reason, lifetime) -> {"verdict", …}
--
-- A raw payload is about to be read: returns which object it is and records who reads it and why. The caller commits
-- this before it shows the payload.
--
-- ref          a payload_ref, or the id of the event that has it
-- lifetime     of the link that is issued; null when the payload itself is shown at once
-- Verdicts     noted       with "payload_ref", "event_id", "action", "at", "delivery_id", "expires_at"
--              no_payload  the event exists, and nothing was stored for it
--              not_found   no failure of this workspace has this id or this payload, or the session does not read this
--                          workspace: see reader_workspaces
-- Appends      payload_accessed, with the payload_ref; meta says what it belongs to: a delivery's own events are only
--              those that happen to it
-- Raises       AP010 without operator or reason, AP011 for a lifetime that is not positive or longer than an hour.
-- Cost         a payload_ref names its day; an event id is searched among all failures of the workspace
CREATE OR REPLACE FUNCTION note_payload_access(
    p_workspace_id uuid,
    p_ref text,
    p_operator text,
    p_reason text,
    p_lifetime interval DEFAULT NULL
)
RETURNS jsonb
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
DECLARE
    _signature jsonb := operator_signature(p_operator, p_reason);
    _folder text := p_workspace_id || '/payloads/';
    _day text[] := regexp_match(p_ref, '^' || _folder || '(20\d\d)/(0[1-9]|1[0-2])/(0[1-9]|[12]\d|3[01])/');
    _since timestamptz := make_timestamptz(_day[1]::int, _day[2]::int, 1, 0, 0, 0, 'UTC')
                          + (_day[3]::int - 1) * interval '1 day';
    _expires_at timestamptz := clock_timestamp() + p_lifetime;
    _found events;
BEGIN
    IF p_lifetime <= interval '0' OR p_lifetime > interval '1 hour' THEN
        RAISE EXCEPTION 'a link to a raw payload must expire within an hour' USING ERRCODE = 'AP011';
    END IF;

    IF NOT sees_workspace(p_workspace_id)
       OR p_workspace_id <> nullif(current_setting('autopost.workspace_id', true), '')::uuid THEN
        RETURN jsonb_build_object('verdict', 'not_found');
    END IF;

    IF p_ref ~* '^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$' THEN
        SELECT e.*
        INTO _found
        FROM events e
        WHERE e.workspace_id = p_workspace_id
          AND e.result = 'error'
          AND e.id = p_ref::uuid
        LIMIT 1;
    ELSIF _since IS NOT NULL THEN
        SELECT e.*
        INTO _found
        FROM events e
        WHERE e.workspace_id = p_workspace_id
          AND e.result = 'error'
          AND e.ts >= _since - interval '1 hour'
          AND e.ts < _since + interval '15 days'
          AND e.payload_ref = p_ref
        ORDER BY e.ts
        LIMIT 1;
    END IF;
    IF _found.id IS NULL THEN
        RETURN jsonb_build_object('verdict', 'not_found');
    ELSIF _found.payload_ref IS NULL OR NOT starts_with(_found.payload_ref, _folder) THEN
        RETURN jsonb_build_object('verdict', 'no_payload');
    END IF;

    INSERT INTO events (workspace_id, action, payload_ref, meta)
    VALUES (p_workspace_id, 'payload_accessed', _found.payload_ref, event_meta(
                _found.meta ->> 'trace_id', (_found.meta ->> 'run_id')::uuid, _signature || jsonb_build_object(
                    'event_id', _found.id, 'delivery_id', _found.delivery_id, 'expires_at', _expires_at)));
    RETURN jsonb_build_object(
        'verdict', 'noted', 'payload_ref', _found.payload_ref, 'event_id', _found.id, 'action', _found.action,
        'at', _found.ts, 'delivery_id', _found.delivery_id, 'expires_at', _expires_at);
END $$;
