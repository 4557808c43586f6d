-- why_run(workspace_id, run_id, limit)
-- -> the posts of a run: staged ones and messages; the run itself when it has none, or when no channel took some of
-- them
--
-- A message names its first run and its last, and neither is indexed: its posts are found by the time of the run, in
-- the log and among the messages that were new then. A repost that no channel took leaves only its run.
CREATE OR REPLACE FUNCTION why_run(p_workspace_id uuid, p_run_id uuid, p_limit int)
RETURNS TABLE (kind text, id uuid)
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    WITH span AS MATERIALIZED (
        -- A push is written by one transaction at its end; so is a post that was staged for hours.
        SELECT CASE WHEN r.kind = 'push' THEN greatest(r.started_at, r.finished_at - interval '1 minute')
                    ELSE r.started_at END - interval '1 second' AS begun,
               coalesce(r.finished_at, clock_timestamp()) + interval '1 second' AS ended
        FROM ingest_runs r
        WHERE r.workspace_id = p_workspace_id
          AND r.run_id = p_run_id
    ), posts AS MATERIALIZED (
        SELECT 'post' AS kind, s.post_id AS id
        FROM staged_posts s
        WHERE s.run_id = p_run_id
          AND s.workspace_id = p_workspace_id
        UNION
        SELECT 'message', m.message_id
        FROM span
        JOIN messages m
          ON m.created_at BETWEEN span.begun AND span.ended
        WHERE m.workspace_id = p_workspace_id
          AND m.first_ingest_run_id = p_run_id
        UNION
        SELECT 'message', e.message_id
        FROM span
        JOIN events e
          ON e.workspace_id = p_workspace_id
         AND e.ts BETWEEN span.begun AND span.ended
        WHERE e.message_id IS NOT NULL
          AND e.meta ->> 'run_id' = p_run_id::text
          AND e.action IN ('enqueue', 'dedup_suppressed', 'validation_failed', 'message_tag_mismatch')
        LIMIT p_limit
    )
    SELECT p.kind, p.id FROM posts p
    UNION ALL
    SELECT 'run', p_run_id
    WHERE NOT EXISTS (SELECT 1 FROM posts)
       OR why_unrouted(p_workspace_id, p_run_id, 1) <> '[]'
$$;
