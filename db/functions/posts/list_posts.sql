-- list_posts(workspace_id, since, before, source_ref, state, limit) -> posts, the newest first, and where to go on
--
-- A call looks at 500 runs at most, so its cost does not grow with what was posted. A page may so be short, or empty,
-- and still have a `next`.
--
-- before       the run to go on behind: `next` of the page before
-- source_ref   in its redacted form, as runs have it
-- Returns      {"posts": [{"run_id", "post_id", "message_id", "trace_id", "source_ref", "accepted_at", "state",
--              "channels": of post_state}], "next": run_id | null}
CREATE OR REPLACE FUNCTION list_posts(
    p_workspace_id uuid,
    p_since timestamptz,
    p_before uuid,
    p_source_ref text,
    p_state text,
    p_limit int
)
RETURNS jsonb
LANGUAGE plpgsql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
SET enable_seqscan = off
AS $$
DECLARE
    _run record;
    _found record;
    _seen int := 0;
    _last uuid;
    _posts jsonb := '[]';
BEGIN
    FOR _run IN
        SELECT r.run_id, r.trace_id, r.source_ref, r.started_at, coalesce(r.message_id, s.message_id) AS message_id,
               s.post_id
        FROM (
            SELECT r.*
            FROM (
                (SELECT r.*
                 FROM ingest_runs r
                 WHERE p_source_ref IS NULL
                   AND r.workspace_id = p_workspace_id
                   AND r.run_id < coalesce(p_before, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
                 ORDER BY r.run_id DESC
                 LIMIT 501)
                UNION ALL
                SELECT r.*
                FROM ( -- no workspace_id inside the fence: its key would read the whole workspace
                    SELECT r.*
                    FROM ingest_runs r
                    WHERE r.source_ref = p_source_ref
                    OFFSET 0
                ) AS r
                WHERE r.workspace_id = p_workspace_id
                  AND (p_before IS NULL OR r.run_id < p_before)
            ) AS r
            ORDER BY r.run_id DESC
            LIMIT 501
        ) AS r
        LEFT JOIN LATERAL (
            SELECT s.post_id, s.message_id
            FROM (SELECT s.* FROM staged_posts s WHERE s.run_id = r.run_id OFFSET 0) AS s
            WHERE s.workspace_id = p_workspace_id
            LIMIT 1
        ) AS s ON true
    LOOP
        IF p_since IS NOT NULL AND _run.started_at < p_since THEN
            RETURN jsonb_build_object('posts', _posts, 'next', NULL);
        ELSIF _seen = 500 OR jsonb_array_length(_posts) = p_limit THEN
            RETURN jsonb_build_object('posts', _posts, 'next', _last);
        END IF;
        _seen := _seen + 1;
        _last := _run.run_id;
        CONTINUE WHEN coalesce(_run.message_id, _run.post_id) IS NULL;
        _found := post_state(p_workspace_id, _run.run_id, _run.message_id, _run.post_id);
        CONTINUE WHEN _found.state <> p_state;
        _posts := _posts || jsonb_build_object(
            'run_id', _run.run_id, 'post_id', _run.post_id, 'message_id', _run.message_id, 'trace_id', _run.trace_id,
            'source_ref', _run.source_ref, 'accepted_at', _run.started_at, 'state', _found.state,
            'channels', _found.channels);
    END LOOP;
    RETURN jsonb_build_object('posts', _posts, 'next', NULL);
END $$;
