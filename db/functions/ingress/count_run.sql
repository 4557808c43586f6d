-- count_run(workspace_id, run_id, counters, source_id, ends)
--
-- Adds counters to a run. With source_id also to the counters of that source in the run; of all of them only the
-- numbers are then added to the run as a whole.
--
-- ends      a post or a source of the run has ended. A push ends with its post, a pull with the last of its sources. So
--           a caller that gives up the lease of a source does so before this call.
-- Locks     ingest_runs, by key
CREATE OR REPLACE FUNCTION count_run(
    p_workspace_id uuid,
    p_run_id uuid,
    p_counters jsonb,
    p_source_id text DEFAULT NULL,
    p_ends boolean DEFAULT false
)
RETURNS void
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
BEGIN
    UPDATE ingest_runs r
    SET stats_json = CASE
        WHEN p_source_id IS NULL THEN add_counters(r.stats_json, p_counters)
        ELSE add_counters(r.stats_json, (
                SELECT coalesce(jsonb_object_agg(c.key, c.value), '{}')
                FROM jsonb_each(p_counters) AS c
                WHERE jsonb_typeof(c.value) = 'number'
            )) || jsonb_build_object('sources', coalesce(r.stats_json -> 'sources', '{}') || jsonb_build_object(
                p_source_id,
                add_counters(coalesce(r.stats_json #> ARRAY['sources', p_source_id], '{}'), p_counters)))
    END
    WHERE r.workspace_id = p_workspace_id
      AND r.run_id = p_run_id;

    -- The row is locked now, so of the last two sources one sees that the other has ended.
    IF p_ends THEN
        UPDATE ingest_runs r
        SET finished_at = clock_timestamp()
        WHERE r.workspace_id = p_workspace_id
          AND r.run_id = p_run_id
          AND (p_source_id IS NOT NULL OR r.kind = 'push')
          AND NOT EXISTS (
              SELECT 1
              FROM pull_sources s
              WHERE s.workspace_id = p_workspace_id
                AND s.run_id = p_run_id
          );
    END IF;
END $$;
