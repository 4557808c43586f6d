-- schedule_publication(workspace_id, publication_id, version, at, timezone, by) -> {"verdict", "publication", "warnings"}
--
-- Gives an approved publication its time, or another one. The version rises, so a command for the old time is void.
--
-- timezone   for display; null keeps the one it has
-- Verdicts   scheduled
--            not_found, stale
--            not_approved      it is a draft; approve it first
--            not_schedulable   its delivery exists already, or it has ended
--            in_past           more than a minute ago
--            channel_disabled
--            outside_window    the channel's window is closed then: `opens_at` is when it opens next
-- warnings   [{"code": "close_to_another", "publication_id", "scheduled_at"}, {"code": "same_content", "sent_at"}]
-- Appends    publication_scheduled
-- Locks      publications by key
CREATE OR REPLACE FUNCTION schedule_publication(
    p_workspace_id uuid,
    p_publication_id uuid,
    p_version int,
    p_at timestamptz,
    p_timezone text,
    p_by text
)
RETURNS jsonb
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
DECLARE
    _locked record := lock_publication(p_workspace_id, p_publication_id, p_version);
    _channel channels;
    _opens_at timestamptz;
    _scheduled publications;
BEGIN
    SELECT c.*
    INTO _channel
    FROM channels c
    WHERE c.workspace_id = p_workspace_id
      AND c.channel_id = (_locked.publication).channel_id;
    _opens_at := CASE WHEN _channel.window_mode = 'windowed'
                      THEN window_opens_at(_channel.posting_window, _channel.timezone, p_at) END;
    _locked.verdict := CASE
        WHEN _locked.verdict IS NOT NULL THEN _locked.verdict
        WHEN (_locked.publication).status = 'draft' THEN 'not_approved'
        WHEN ((_locked.publication).delivery_id IS NOT NULL
              AND (_locked.publication).pause_code IS DISTINCT FROM 'missed')
             OR (_locked.publication).status NOT IN ('approved', 'scheduled', 'publishing', 'paused')
             OR (_locked.publication).approved_plan_hash IS NULL THEN 'not_schedulable'
        WHEN p_at < clock_timestamp() - interval '1 minute' THEN 'in_past'
        WHEN NOT _channel.enabled THEN 'channel_disabled'
        WHEN _opens_at > p_at THEN 'outside_window'
    END;
    IF _locked.verdict IS NOT NULL THEN
        RETURN publication_refusal(_locked.verdict, _locked.publication)
            || CASE WHEN _locked.verdict = 'outside_window' THEN jsonb_build_object('opens_at', nullif(_opens_at, 'infinity'))
                    ELSE '{}' END;
    END IF;
    UPDATE publications p
    SET status = 'scheduled',
        scheduled_at = p_at,
        timezone = coalesce(p_timezone, p.timezone),
        version = p.version + 1,
        delivery_id = NULL, -- of what was missed; begin_publication brings it back
        settled_at = NULL,
        pause_code = NULL,
        last_error = NULL,
        changed_by = p_by,
        updated_at = clock_timestamp()
    WHERE p.workspace_id = p_workspace_id
      AND p.publication_id = p_publication_id
    RETURNING p.* INTO _scheduled;
    RETURN jsonb_build_object('verdict', 'scheduled', 'publication', publication_document(_scheduled),
                              'warnings', publication_warnings(_scheduled));
END $$;
