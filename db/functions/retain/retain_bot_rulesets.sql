-- retain_bot_rulesets(keep, limit) -> how many rulesets that no log line names any more are deleted
--
-- Stays     what bots answer by now: nothing was loaded after it; and what a kept log line may name. Once another ruleset
--           is loaded nothing is decided by the one before, but a turn may still be committed; the hour is for it
-- Locks     bot_rulesets by key, SKIP LOCKED
CREATE OR REPLACE FUNCTION retain_bot_rulesets(p_keep interval, p_limit int)
RETURNS int
LANGUAGE sql
SECURITY DEFINER SET search_path = public, pg_temp
SET enable_seqscan = off
AS $$
    WITH old AS MATERIALIZED (
        SELECT r.workspace_id, r.ruleset_hash
        FROM workspaces w
        CROSS JOIN LATERAL (
            SELECT coalesce(min(l.ts), clock_timestamp()) - interval '1 hour' AS unnamed_before
            FROM bot_logs l
            WHERE l.workspace_id = w.workspace_id
        ) AS l
        CROSS JOIN LATERAL (
            SELECT r.workspace_id, r.ruleset_hash
            FROM bot_rulesets r
            WHERE r.workspace_id = w.workspace_id
              AND r.first_used_at < (SELECT clock_timestamp() - p_keep)
              AND EXISTS (
                  SELECT 1
                  FROM bot_rulesets n
                  WHERE n.workspace_id = r.workspace_id
                    AND n.first_used_at > r.last_loaded_at
                    AND n.first_used_at < l.unnamed_before
              )
            ORDER BY r.first_used_at
            LIMIT p_limit
            FOR UPDATE SKIP LOCKED
        ) AS r
        LIMIT p_limit
    ), gone AS (
        DELETE FROM bot_rulesets t
        USING old o
        WHERE t.workspace_id = o.workspace_id
          AND t.ruleset_hash = o.ruleset_hash
        RETURNING 1
    )
    SELECT count(*)::int FROM gone
$$;
