-- count_pull(workspace_id, run_id, source_id, counters)
--
-- Adds to what a run says of one of its sources, and the numbers to what it says of all. A run ends with the last of its
-- sources, so whoever gives up a lease counts first and calls with p_ends afterwards.
--
-- Locks     ingest_runs, by key
CREATE OR REPLACE FUNCTION count_pull(
    p_workspace_id uuid,
    p_run_id uuid,
    p_source_id text,
    p_counters jsonb,
    p_ends boolean DEFAULT false
)
RETURNS void
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
BEGIN
    UPDATE ingest_runs r
    SET stats_json = add_counters(r.stats_json, (
            SELECT coalesce(jsonb_object_agg(c.key, c.value), '{}')
            FROM jsonb_each(p_counters) AS c
            WHERE jsonb_typeof(c.value) = 'number'
        )) || jsonb_build_object('sources', coalesce(r.stats_json -> 'sources', '{}') || jsonb_build_object(
            p_source_id,
            add_counters(coalesce(r.stats_json #> ARRAY['sources', p_source_id], '{}'), p_counters)))
    WHERE r.workspace_id = p_workspace_id
      AND r.run_id = p_run_id;

    -- The row is held now, so of the last two sources one sees that the other has ended.
    UPDATE ingest_runs r
    SET finished_at = clock_timestamp()
    WHERE p_ends
      AND r.workspace_id = p_workspace_id
      AND r.run_id = p_run_id
      AND NOT EXISTS (
          SELECT 1
          FROM pull_sources s
          WHERE s.workspace_id = p_workspace_id
            AND s.run_id = p_run_id
      );
END $$;
