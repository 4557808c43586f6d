-- note_turns(workspace_ids, now, older_than)
--
-- A claim was in these workspaces: they go behind the others in due_workspaces.
--
-- older_than    leaves alone what was noted less than this before: a workspace that is served thirty times a second
--               need not be written each time
-- Changes       workspace_due
-- Locks         workspace_due by key; after all other tables
CREATE OR REPLACE FUNCTION note_turns(
    p_workspace_ids uuid[],
    p_now timestamptz,
    p_older_than interval DEFAULT interval '0'
)
RETURNS void
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
BEGIN
    INSERT INTO workspace_due (workspace_id, last_claimed_at)
    SELECT w.workspace_id, p_now
    FROM (SELECT DISTINCT unnest(p_workspace_ids) AS workspace_id ORDER BY 1) AS w
    WHERE NOT EXISTS (
        SELECT 1
        FROM workspace_due t
        WHERE t.workspace_id = w.workspace_id
          AND t.last_claimed_at > p_now - p_older_than
    )
    ON CONFLICT (workspace_id) DO UPDATE
    SET last_claimed_at = excluded.last_claimed_at;
END $$;
