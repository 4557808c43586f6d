-- why_unrouted(workspace_id, run_id, limit)
-- -> the posts of a run that no channel took: [{"at", "code", "message", "tags", "source_id", "source_ref"}]
--
-- Without those that were staged: why_show_post has their history.
CREATE OR REPLACE FUNCTION why_unrouted(p_workspace_id uuid, p_run_id uuid, p_limit int)
RETURNS jsonb
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT coalesce(jsonb_agg(u.shown ORDER BY u.seq), '[]')
    FROM (
        SELECT e.seq, jsonb_strip_nulls(jsonb_build_object(
                   'at', e.ts, 'code', e.error -> 'code', 'message', e.error -> 'message', 'tags', e.meta -> 'tags',
                   'source_id', e.meta -> 'source_id', 'source_ref', e.meta -> 'source_ref')) AS shown
        FROM ingest_runs r
        JOIN events e
          ON e.workspace_id = r.workspace_id
         AND e.ts BETWEEN r.started_at - interval '1 second'
                      AND coalesce(r.finished_at, clock_timestamp()) + interval '1 second'
        WHERE r.workspace_id = p_workspace_id
          AND r.run_id = p_run_id
          AND e.action = 'enqueue'
          AND e.delivery_id IS NULL
          AND NOT e.meta ? 'post_id'
          AND e.meta ->> 'run_id' = p_run_id::text
        ORDER BY e.seq
        LIMIT p_limit
    ) AS u
$$;
