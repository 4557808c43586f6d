-- why_closed(workspace_id, channel_id, action) -> when and why a channel was paused or disabled, as the log has it
--
-- Nothing when the last event in the log is an opening: the channel was then closed without the functions.
-- action       channel_paused | channel_disabled
-- cause        {"code"} of the failure, or {"operator", "reason"}
CREATE OR REPLACE FUNCTION why_closed(p_workspace_id uuid, p_channel_id uuid, p_action event_action)
RETURNS TABLE (ts timestamptz, cause jsonb)
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT e.ts,
           jsonb_strip_nulls(jsonb_build_object(
               'code', e.error ->> 'code', 'operator', e.meta ->> 'operator', 'reason', e.meta ->> 'reason',
               'error_streak', e.meta -> 'error_streak'))
    FROM (
        SELECT e.ts, e.action, e.error, e.meta
        FROM events e
        WHERE e.workspace_id = p_workspace_id
          AND e.channel_id = p_channel_id
          AND e.delivery_id IS NULL
          AND (e.action = p_action
               -- A resume ends a pause also where it leaves the channel disabled.
               OR (e.action = 'channel_enabled' AND (p_action = 'channel_paused' OR e.meta @> '{"enabled": true}')))
        ORDER BY e.ts DESC
        LIMIT 1
    ) AS e
    WHERE e.action = p_action
$$;
