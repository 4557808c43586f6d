-- finish_staged_run(workspace_id, run_id, stats, reason)
--
-- A staged post of this run has ended. A push is over with its one post; a pull has many, and their counts are added.
--
-- Locks     ingest_runs by key
CREATE OR REPLACE FUNCTION finish_staged_run(p_workspace_id uuid, p_run_id uuid, p_stats jsonb, p_reason text)
RETURNS void
LANGUAGE sql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    UPDATE ingest_runs r
    SET finished_at = CASE WHEN r.kind = 'push' THEN clock_timestamp() ELSE r.finished_at END,
        stats_json = add_counters(r.stats_json, p_stats || jsonb_strip_nulls(jsonb_build_object('reason', p_reason)))
    WHERE r.workspace_id = p_workspace_id
      AND r.run_id = p_run_id
$$;
