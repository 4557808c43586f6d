-- unseen_pull_items(workspace_id, source_id, source_refs) -> the refs that this source has not delivered yet
--
-- Saves compiling items that would be skipped. No decision depends on it: ingest_pull_chunk checks again.
CREATE OR REPLACE FUNCTION unseen_pull_items(p_workspace_id uuid, p_source_id text, p_source_refs text[])
RETURNS SETOF text
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT DISTINCT g.source_ref
    FROM unnest(p_source_refs) AS g (source_ref)
    CROSS JOIN LATERAL ( -- each by key, whatever the planner estimates
        SELECT count(*) AS receipts
        FROM pull_receipts r
        WHERE r.workspace_id = p_workspace_id
          AND r.source_id = p_source_id
          AND r.source_ref = g.source_ref
          AND r.released_at IS NULL
    ) AS seen
    WHERE seen.receipts = 0
$$;
