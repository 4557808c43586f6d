-- note_bot_turns(workspace_ids, now)
--
-- Remembers that the bots of these workspaces were served, for the order of due_bot_workspaces. Who finds a row locked
-- leaves it: another worker notes the same. So is a row left that was written a moment ago.
--
-- Locks     bot_due SKIP LOCKED, after all other tables
CREATE OR REPLACE FUNCTION note_bot_turns(p_workspace_ids uuid[], p_now timestamptz)
RETURNS void
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
BEGIN
    UPDATE bot_due d
    SET last_taken_at = p_now
    FROM (
        SELECT t.place
        FROM unnest(p_workspace_ids) AS w (workspace_id)
        CROSS JOIN LATERAL (
            SELECT t.ctid AS place
            FROM bot_due t
            WHERE t.workspace_id = w.workspace_id
              AND t.last_taken_at < p_now - interval '250 milliseconds'
            FOR NO KEY UPDATE SKIP LOCKED
        ) AS t
    ) AS n
    WHERE d.ctid = n.place;

    INSERT INTO bot_due (workspace_id, last_taken_at)
    SELECT w.workspace_id, p_now
    FROM (SELECT DISTINCT unnest(p_workspace_ids) AS workspace_id ORDER BY 1) AS w
    WHERE NOT EXISTS (SELECT 1 FROM bot_due d WHERE d.workspace_id = w.workspace_id)
    ON CONFLICT DO NOTHING;
END $$;
