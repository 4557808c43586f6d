-- why(id, workspace_id, limit, now) -> what holds this, or how it ended: {"at": the database's time, "found": […]}
--
-- One entry for each thing that the id may mean, none when the id is unknown. A staged post that was enqueued is
-- followed by its message, a publication by its delivery.
--
-- found        of why_show_publication, why_show_delivery, why_show_message, why_show_channel, why_show_post and
--              why_show_updates; of a run without posts
--              {"kind": "run", "workspace_id", "run_id", "run_kind", "trace_id", "started_at", "finished_at", "stats",
--              "unrouted": of why_unrouted}
-- limit        how many things, and how many entries of each list in them
CREATE OR REPLACE FUNCTION why(
    p_id text,
    p_workspace_id uuid DEFAULT NULL,
    p_limit int DEFAULT 20,
    p_now timestamptz DEFAULT NULL
)
RETURNS jsonb
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    WITH found AS MATERIALIZED (
        SELECT f.workspace_id, f.kind, f.id, f.nth
        FROM why_find(p_id, p_workspace_id, p_limit) WITH ORDINALITY AS f (workspace_id, kind, id, nth)
    ), meant AS MATERIALIZED (
        SELECT f.workspace_id, f.kind, f.id, f.nth FROM found f
        UNION ALL
        SELECT f.workspace_id, 'message', s.message_id, f.nth
        FROM found f
        JOIN staged_posts s
          ON s.workspace_id = f.workspace_id
         AND s.post_id = f.id
        WHERE f.kind = 'post'
          AND s.message_id IS NOT NULL
          AND s.message_id NOT IN (SELECT k.id FROM found k WHERE k.kind = 'message')
        UNION ALL
        SELECT f.workspace_id, 'delivery', p.delivery_id, f.nth
        FROM found f
        JOIN publications p
          ON p.workspace_id = f.workspace_id
         AND p.publication_id = f.id
        WHERE f.kind = 'publication'
          AND p.delivery_id NOT IN (SELECT k.id FROM found k WHERE k.kind = 'delivery')
    )
    SELECT jsonb_build_object('at', coalesce(p_now, clock_timestamp()),
                              'found', coalesce(jsonb_agg(shown.entry ORDER BY m.nth, m.kind DESC), '[]')
                                       || coalesce((
                                              SELECT jsonb_agg(u)
                                              FROM why_show_updates(p_id, p_workspace_id, p_limit, p_now) AS u
                                          ), '[]'))
    FROM meant m
    CROSS JOIN LATERAL (
        SELECT CASE m.kind
            WHEN 'publication' THEN why_show_publication(m.workspace_id, m.id, p_limit, p_now)
            WHEN 'delivery' THEN why_show_delivery(m.workspace_id, m.id, p_limit, p_now)
            WHEN 'message' THEN why_show_message(m.workspace_id, m.id, p_limit, p_now)
            WHEN 'channel' THEN why_show_channel(m.workspace_id, m.id, p_limit, p_now)
            WHEN 'post' THEN why_show_post(m.workspace_id, m.id, p_now)
            WHEN 'run' THEN (
                SELECT jsonb_build_object(
                    'kind', 'run', 'workspace_id', r.workspace_id, 'run_id', r.run_id, 'run_kind', r.kind,
                    'trace_id', r.trace_id, 'started_at', r.started_at, 'finished_at', r.finished_at,
                    'stats', r.stats_json, 'unrouted', why_unrouted(r.workspace_id, r.run_id, p_limit))
                FROM ingest_runs r
                WHERE r.workspace_id = m.workspace_id
                  AND r.run_id = m.id
            )
        END AS entry
    ) AS shown
    WHERE shown.entry IS NOT NULL
$$;
