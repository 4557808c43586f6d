-- recover_staged_posts(older, max_attempts, limit) -> how many posts were taken back from lost workers
--
-- An expired lease is taken over without this (lease_staged_posts), so this is for posts that no worker takes: they go
-- back to staged, with the reason. One that has cost max_attempts workers is given up, with its event.
--
-- Changes      fetching -> staged | failed, by fail_staged_post
-- Appends      media_failed, for those that are given up
-- Locks        staged_posts by key, SKIP LOCKED, then as fail_staged_post
CREATE OR REPLACE FUNCTION recover_staged_posts(p_older interval, p_max_attempts int, p_limit int)
RETURNS int
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
DECLARE
    _lost record;
    _recovered int := 0;
BEGIN
    FOR _lost IN
        SELECT s.workspace_id, s.post_id, s.lease_token
        FROM staged_posts s
        JOIN workspaces w
          ON w.workspace_id = s.workspace_id
         AND w.status = 'active'
        WHERE s.status = 'fetching'
          AND s.lease_until < (SELECT clock_timestamp() - p_older)
        ORDER BY s.workspace_id, s.post_id
        LIMIT p_limit
        FOR UPDATE OF s SKIP LOCKED
    LOOP
        PERFORM fail_staged_post(_lost.workspace_id, _lost.post_id, _lost.lease_token, '{"code": "worker_lost"}',
                                 p_max_attempts);
        _recovered := _recovered + 1;
    END LOOP;
    RETURN _recovered;
END $$;
