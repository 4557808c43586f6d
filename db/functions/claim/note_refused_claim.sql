-- note_refused_claim(workspace_id)
--
-- A claim found the lock of its workspace taken, usually by another claim and for milliseconds. See refused_claims.
--
-- Changes      claim_refusals, at most once a second
CREATE OR REPLACE FUNCTION note_refused_claim(p_workspace_id uuid)
RETURNS void
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
DECLARE
    _now timestamptz := clock_timestamp();
BEGIN
    IF EXISTS (
        SELECT 1
        FROM claim_refusals r
        WHERE r.workspace_id = p_workspace_id
          AND r.seen_at > _now - interval '1 second'
    ) THEN
        RETURN;
    END IF;
    INSERT INTO claim_refusals AS r (workspace_id, since, seen_at)
    SELECT w.workspace_id, _now, _now
    FROM workspaces w
    WHERE w.workspace_id = p_workspace_id
    ON CONFLICT (workspace_id) DO UPDATE
    SET seen_at = excluded.seen_at,
        since = CASE
            WHEN r.seen_at > _now - interval '10 seconds' AND NOT EXISTS (
                SELECT 1
                FROM workspace_due d
                WHERE d.workspace_id = p_workspace_id
                  AND d.last_claimed_at >= r.since
            ) THEN r.since
            ELSE excluded.since
        END;
END $$;
