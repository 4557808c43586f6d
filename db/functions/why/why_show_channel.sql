-- why_show_channel(workspace_id, channel_id, limit, now) -> the answer of `autopost why` for a channel
--
-- {"kind": "channel", "workspace_id", "channel": {"channel_id", "platform", "target_id", "title"}, "rate_group",
--  "gate": the first closed gate (why_channel) with the names of the others as "later"; null when it is open,
--  "queue": {"waiting" due, "later" not due yet, "held" for an operator, "sending", "oldest_at"}, "error_streak",
--  "history": its own events, the last of them}
-- Null for a channel that does not exist, or that the caller may not see.
--
-- Cost         what is live in the channel, by index
CREATE OR REPLACE FUNCTION why_show_channel(
    p_workspace_id uuid,
    p_channel_id uuid,
    p_limit int,
    p_now timestamptz DEFAULT NULL
)
RETURNS jsonb
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT jsonb_build_object(
        'kind', 'channel', 'workspace_id', c.workspace_id,
        'channel', jsonb_build_object('channel_id', c.channel_id, 'platform', c.platform, 'target_id', c.target_id,
                                      'title', c.title),
        'rate_group', c.rate_group, 'error_streak', c.error_streak, 'created_at', c.created_at,
        'gate', gates.list -> 0 || jsonb_build_object('later', (
            SELECT coalesce(jsonb_agg(g.shown -> 'gate' ORDER BY g.nth), '[]')
            FROM jsonb_array_elements(gates.list) WITH ORDINALITY AS g (shown, nth)
            WHERE g.nth > 1
        )),
        'queue', queue.shown,
        'history', why_history(p_workspace_id, NULL, c.channel_id, '-infinity', 'infinity', p_limit))
    FROM channels c
    CROSS JOIN LATERAL (
        SELECT jsonb_agg(to_jsonb(g) - 'channel_id'
                         ORDER BY array_position(why_precedence(), g.gate)) AS list
        FROM why_channel(p_workspace_id, ARRAY[c.channel_id], p_now) AS g
    ) AS gates
    CROSS JOIN LATERAL (
        SELECT jsonb_build_object(
            'waiting', count(*) FILTER (WHERE q.claim_token IS NULL AND q.due),
            'later', count(*) FILTER (WHERE q.claim_token IS NULL AND NOT q.due AND isfinite(q.sort_at)),
            'held', count(*) FILTER (WHERE q.claim_token IS NULL AND q.asleep AND NOT isfinite(q.sort_at)),
            'sending', count(q.claim_token),
            'oldest_at', min(q.sort_at) FILTER (WHERE q.claim_token IS NULL AND NOT q.asleep)) AS shown
        FROM (
            SELECT q.workspace_id, q.claim_token, q.asleep, q.sort_at,
                   NOT q.asleep OR q.sort_at <= coalesce(p_now, clock_timestamp()) AS due
            FROM delivery_queue q
            WHERE q.channel_id = c.channel_id
            OFFSET 0 -- by the index of the channel, not the key of the workspace
        ) AS q
        WHERE q.workspace_id = c.workspace_id
    ) AS queue
    WHERE c.workspace_id = p_workspace_id
      AND c.channel_id = p_channel_id
      AND sees_workspace(p_workspace_id)
$$;
