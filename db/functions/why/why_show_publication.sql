-- why_show_publication(workspace_id, publication_id, limit, now) -> the answer of `autopost why` for a publication
--
-- {"kind": "publication", "workspace_id", "publication_id", "version", "status", "media_type", "created_by",
--  "scheduled_at", "timezone", "trace_id", "owner", "approved_by", "plan_hash", "delivery_id",
--  "channel": {"channel_id", "platform", "target_id", "title"},
--  "gate": of why_publication_gate while it waits, else null,
--  "ended": {"outcome", "at", "detail", "command"} once it is published, failed or cancelled, else null,
--  "notices": [{"version", "code", "target", "told_at", "given_up_at", "attempts", "next_try_at", "error"}],
--  "history": of its own events, as of why_history}
--
-- What its delivery waits for is the delivery's own answer, which `why` adds.
--
-- Cost         a probe by key for each channel of the workspace: an edit may have moved it from one to another
-- Null for a publication that does not exist, or that the caller may not see.
CREATE OR REPLACE FUNCTION why_show_publication(
    p_workspace_id uuid,
    p_publication_id uuid,
    p_limit int,
    p_now timestamptz DEFAULT NULL
)
RETURNS jsonb
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT jsonb_build_object(
        'kind', 'publication', 'workspace_id', p.workspace_id, 'publication_id', p.publication_id,
        'version', p.version, 'status', p.status, 'media_type', p.media_type, 'created_by', p.created_by,
        'scheduled_at', p.scheduled_at, 'timezone', p.timezone, 'trace_id', p.trace_id, 'owner', quoted(p.owner),
        'approved_by', p.approved_by, 'plan_hash', p.approved_plan_hash, 'delivery_id', p.delivery_id,
        'channel', jsonb_build_object('channel_id', c.channel_id, 'platform', c.platform, 'target_id', c.target_id,
                                      'title', c.title),
        'gate', why_publication_gate(p, coalesce(p_now, clock_timestamp())),
        'ended', CASE WHEN p.status IN ('published', 'failed', 'cancelled') THEN jsonb_strip_nulls(jsonb_build_object(
            'outcome', p.status,
            'at', coalesce(p.published_at, p.settled_at, p.updated_at),
            'detail', CASE p.status
                WHEN 'published' THEN jsonb_build_object('provider_message_id', p.published_message_id)
                WHEN 'failed' THEN shown_error(p.last_error)
                    || jsonb_build_object('error_type', p.last_error -> 'error_type')
                ELSE jsonb_build_object('operator', p.changed_by, 'reason', quoted(p.cancel_reason, 500))
            END,
            'command', CASE
                WHEN p.status = 'failed' AND p.delivery_id IS NOT NULL
                    THEN format('autopost publication retry %s --reason ''…''', p.publication_id)
                WHEN p.status = 'failed' THEN format('autopost publication edit %s FILE', p.publication_id)
            END)) END,
        'notices', (
            SELECT coalesce(jsonb_agg(jsonb_strip_nulls(jsonb_build_object(
                'version', n.version, 'code', n.code, 'target', n.target, 'told_at', n.told_at,
                'given_up_at', n.given_up_at, 'attempts', n.attempts, 'error', n.last_error,
                'next_try_at', CASE WHEN n.told_at IS NULL AND n.given_up_at IS NULL THEN n.next_try_at END))
                ORDER BY n.created_at), '[]')
            FROM publication_notices n
            WHERE n.workspace_id = p.workspace_id
              AND n.publication_id = p.publication_id
        ),
        'history', (
            SELECT coalesce(jsonb_agg(t.shown ORDER BY t.seq), '[]')
            FROM (
                SELECT e.seq,
                       jsonb_strip_nulls(jsonb_build_object(
                           'at', e.ts,
                           'after_ms', round(extract(epoch FROM e.ts - lag(e.ts) OVER (ORDER BY e.seq)) * 1000),
                           'of', 'publication', 'action', e.action, 'result', e.result, 'version', e.meta -> 'version',
                           'code', e.error ->> 'code', 'message', e.error ->> 'message',
                           'operator', e.meta ->> 'operator', 'reason', e.meta ->> 'reason',
                           'until', e.meta ->> 'scheduled_at')) AS shown
                FROM channels k
                JOIN events e
                  ON e.workspace_id = k.workspace_id
                 AND e.channel_id = k.channel_id
                 AND e.ts >= p.created_at
                 AND e.delivery_id IS NULL
                 AND e.meta ->> 'publication_id' = p.publication_id::text
                WHERE k.workspace_id = p.workspace_id
                ORDER BY e.seq DESC
                LIMIT p_limit
            ) AS t
        ))
    FROM publications p
    JOIN channels c USING (workspace_id, channel_id)
    WHERE p.workspace_id = p_workspace_id
      AND p.publication_id = p_publication_id
      AND sees_workspace(p_workspace_id)
$$;
