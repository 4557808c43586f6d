-- send_attempts(workspace_id, after_ts, after_id, last_ts, last_id) -> the claims of a page of events
--
-- slot_at    null for a claim without a slot
-- The planner inlines the body, so each query keeps its plan.
CREATE OR REPLACE FUNCTION send_attempts(
    p_workspace_id uuid,
    p_after_ts timestamptz,
    p_after_id uuid,
    p_last_ts timestamptz,
    p_last_id uuid
)
RETURNS TABLE (
    ts timestamptz,
    id uuid,
    seq bigint,
    delivery_id uuid,
    channel_id uuid,
    slot_at timestamptz,
    is_trial boolean
)
LANGUAGE sql
STABLE
AS $$
    SELECT e.ts, e.id, e.seq, e.delivery_id, e.channel_id, (e.meta ->> 'slot_at')::timestamptz,
           e.meta @> '{"trial": true}'
    FROM events e
    WHERE e.workspace_id = p_workspace_id
      AND e.ts >= p_after_ts
      AND e.ts <= p_last_ts
      AND (e.ts, e.id) > (p_after_ts, p_after_id)
      AND (e.ts, e.id) <= (p_last_ts, p_last_id)
      AND e.action = 'send_attempt'
$$;
