-- why_show_delivery(workspace_id, delivery_id, limit, now) -> the answer of `autopost why` for a delivery
--
-- {"kind": "delivery", "workspace_id", "delivery_id", "message_id", "status", "attempt", "max_attempts", "created_at",
--  "scheduled_for", "trace_id", "channel": {"channel_id", "platform", "target_id", "title"},
--  "gate": what holds it while it is live (why_delivery), else null,
--  "ended": how it ended (why_ended), else null; of a deduped one also where its twin is, as "twin_gate",
--  "history": why_history, with what happened to its channel meanwhile}
-- Null for a delivery that does not exist, or that the caller may not see.
CREATE OR REPLACE FUNCTION why_show_delivery(
    p_workspace_id uuid,
    p_delivery_id uuid,
    p_limit int,
    p_now timestamptz DEFAULT NULL
)
RETURNS jsonb
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT jsonb_build_object(
        'kind', 'delivery', 'workspace_id', d.workspace_id, 'delivery_id', d.delivery_id, 'message_id', d.message_id,
        'status', d.status, 'attempt', d.attempt, 'max_attempts', d.max_attempts, 'created_at', d.created_at,
        'scheduled_for', d.scheduled_for, 'trace_id', d.trace_id,
        'channel', jsonb_build_object('channel_id', c.channel_id, 'platform', c.platform, 'target_id', c.target_id,
                                      'title', c.title),
        'gate', (
            SELECT to_jsonb(g) - '{delivery_id,channel_id,status}'::text[]
            FROM why_delivery(p_workspace_id, ARRAY[d.delivery_id], p_now) AS g
        ),
        'ended', ended.shown || coalesce((
            SELECT jsonb_build_object('twin_gate', to_jsonb(g) - '{delivery_id,channel_id,status}'::text[])
            FROM why_delivery(p_workspace_id, ARRAY[(ended.shown #>> '{detail,twin,delivery_id}')::uuid], p_now) AS g
        ), '{}'),
        'history', why_history(p_workspace_id, d.delivery_id, d.channel_id, d.created_at,
                               CASE WHEN ended.shown IS NULL THEN 'infinity' ELSE d.updated_at END, p_limit))
    FROM deliveries d
    JOIN channels c USING (workspace_id, channel_id)
    LEFT JOIN LATERAL (
        SELECT to_jsonb(e) - '{delivery_id,channel_id,status}'::text[] AS shown
        FROM why_ended(p_workspace_id, ARRAY[d.delivery_id], p_now) AS e
    ) AS ended ON true
    WHERE d.workspace_id = p_workspace_id
      AND d.delivery_id = p_delivery_id
      AND sees_workspace(p_workspace_id)
$$;
