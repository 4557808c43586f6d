-- why_show_post(workspace_id, post_id, now) -> the answer of `autopost why` for a post that was staged for its media
--
-- {"kind": "post", "workspace_id", "post_id", "run_id", "trace_id", "status", "attempt", "created_at", "finished_at",
--  "message_id" once it is enqueued, "error" of the last attempt,
--  "gate": {"gate", "since", "until", "released_by", "command"} while it waits, else null,
--  "media": [{"place", "type", "host", "state", "since", "waits_for", "error"}],
--  "history": [{"at", "action", "attempt", "result", "code"}]}
--
-- gate         staged_media; workspace_paused or workspace_disabled while the workspace is not active
-- until        of a running attempt: its lease; of the next one: when it begins. Null: a worker takes it now.
-- state        given (nothing to fetch), fetched, fetching, busy (another post, `waits_for`, is fetching it), waiting
-- host         only this: the rest of an address may be a secret
-- Null for a post that does not exist, or that the caller may not see.
CREATE OR REPLACE FUNCTION why_show_post(p_workspace_id uuid, p_post_id uuid, p_now timestamptz DEFAULT NULL)
RETURNS jsonb
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    WITH clock AS MATERIALIZED (
        SELECT coalesce(p_now, clock_timestamp()) AS now
    ), its AS MATERIALIZED (
        SELECT s.*, w.status AS workspace_status, w.status_since,
               s.status IN ('staged', 'fetching') AS waits,
               s.status = 'fetching' AND s.lease_until > clock.now AS leased
        FROM clock, staged_posts s
        JOIN workspaces w USING (workspace_id)
        WHERE s.workspace_id = p_workspace_id
          AND s.post_id = p_post_id
          AND sees_workspace(p_workspace_id)
    )
    SELECT jsonb_build_object(
        'kind', 'post', 'workspace_id', s.workspace_id, 'post_id', s.post_id, 'run_id', s.run_id,
        'trace_id', s.trace_id, 'status', s.status, 'attempt', s.attempt, 'created_at', s.created_at,
        'finished_at', s.finished_at,
        'message_id', s.message_id, 'error', s.last_error,
        'gate', CASE
            WHEN NOT s.waits THEN NULL
            WHEN s.workspace_status <> 'active' AND NOT s.leased THEN jsonb_build_object(
                'gate', 'workspace_' || s.workspace_status, 'since', s.status_since, 'until', NULL,
                'released_by', 'operator',
                'command', format('autopost workspace resume --workspace %s --reason ''…''', s.workspace_id))
            ELSE jsonb_build_object(
                'gate', 'staged_media', 'since', s.created_at,
                'until', CASE WHEN s.next_attempt_at > clock.now THEN s.next_attempt_at END,
                'released_by', CASE WHEN s.next_attempt_at > clock.now AND NOT s.leased THEN 'time' ELSE 'ingest' END,
                'command', NULL)
        END,
        'media', (
            SELECT coalesce(jsonb_agg(jsonb_strip_nulls(jsonb_build_object(
                'place', item.place - 1,
                'type', item.shown ->> 'type',
                'host', substring(item.url FROM '^\s*[A-Za-z][A-Za-z0-9+.-]*://(?:[^/?#@]*@)?([^/?#:]+)'),
                'state', CASE
                    WHEN item.url IS NULL THEN 'given'
                    WHEN f.finished_at > s.created_at THEN 'fetched'
                    WHEN f.finished_at IS NOT NULL OR f.post_id IS NULL THEN 'waiting'
                    WHEN f.post_id = s.post_id AND s.leased AND f.lease_token = s.lease_token THEN 'fetching'
                    WHEN other.post_id IS NOT NULL THEN 'busy'
                    ELSE 'waiting'
                END,
                'since', CASE WHEN f.finished_at IS NULL THEN f.started_at ELSE f.finished_at END,
                'waits_for', other.post_id,
                'error', CASE WHEN s.last_error ->> 'field' = format('media[%s].url', item.place - 1)
                              THEN s.last_error ->> 'code' END)) ORDER BY item.place), '[]')
            FROM jsonb_array_elements(s.request -> 'media') WITH ORDINALITY AS m (shown, place)
            CROSS JOIN LATERAL (SELECT m.shown, m.place, m.shown ->> 'url' AS url) AS item
            LEFT JOIN media_fetches f
              ON f.workspace_id = s.workspace_id
             AND f.url_hash = encode(sha256(convert_to(btrim(item.url, E' \t\n\r\f\v'), 'UTF8')), 'hex')
            LEFT JOIN staged_posts other
              ON other.workspace_id = f.workspace_id
             AND other.post_id = f.post_id
             AND other.post_id <> s.post_id
             AND f.finished_at IS NULL
             AND other.lease_token = f.lease_token
             AND other.status = 'fetching'
             AND other.lease_until > clock.now
        ),
        'history', (
            SELECT coalesce(jsonb_agg(jsonb_strip_nulls(jsonb_build_object(
                'at', e.ts, 'action', e.action, 'attempt', e.attempt, 'result', e.result, 'code', e.error ->> 'code'
            )) ORDER BY e.seq), '[]')
            FROM events e
            WHERE e.workspace_id = s.workspace_id
              AND e.ts BETWEEN s.created_at AND coalesce(s.finished_at, clock.now) + interval '10 seconds'
              AND e.delivery_id IS NULL
              AND e.meta ->> 'post_id' = s.post_id::text
        ))
    FROM clock, its s
$$;
