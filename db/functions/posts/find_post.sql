-- find_post(workspace_id, id) -> what an id of a sender means: one request, or a content
--
-- Accepts the id of a run, of a post that waited for media, of a message, and a trace id (its last request).
--
-- run_id     null for a message: its content may belong to several requests
-- Returns    nothing for an id of another workspace
CREATE OR REPLACE FUNCTION find_post(p_workspace_id uuid, p_id text)
RETURNS TABLE (run_id uuid, message_id uuid, post_id uuid)
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
SET enable_seqscan = off
AS $$
    WITH asked AS MATERIALIZED (
        SELECT CASE WHEN p_id ~* '^[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}$' THEN p_id::uuid END AS id
    ), staged AS (
        SELECT s.run_id, s.message_id, s.post_id
        FROM asked a
        JOIN staged_posts s ON s.workspace_id = p_workspace_id AND s.post_id = a.id
    ), run AS (
        SELECT r.run_id, r.message_id
        FROM asked a
        JOIN ingest_runs r ON r.workspace_id = p_workspace_id AND r.run_id = a.id
        WHERE r.kind = 'push'
        UNION ALL
        (SELECT t.run_id, t.message_id
         FROM (SELECT r.* FROM ingest_runs r WHERE r.trace_id = p_id OFFSET 0) AS t
         WHERE t.workspace_id = p_workspace_id
           AND t.kind = 'push'
         ORDER BY t.started_at DESC
         LIMIT 1)
    )
    SELECT f.run_id, f.message_id, f.post_id
    FROM (
        SELECT 1 AS first, s.* FROM staged s
        UNION ALL
        SELECT 2, r.run_id, coalesce(r.message_id, s.message_id), s.post_id
        FROM run r
        LEFT JOIN LATERAL (
            SELECT s.message_id, s.post_id
            FROM (SELECT s.* FROM staged_posts s WHERE s.run_id = r.run_id OFFSET 0) AS s
            WHERE s.workspace_id = p_workspace_id
            LIMIT 1
        ) AS s ON true
        WHERE coalesce(r.message_id, s.post_id) IS NOT NULL
        UNION ALL
        SELECT 3, NULL, m.message_id, NULL
        FROM asked a
        JOIN messages m ON m.workspace_id = p_workspace_id AND m.message_id = a.id
    ) AS f
    ORDER BY f.first
    LIMIT 1
$$;
