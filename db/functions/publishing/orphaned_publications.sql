-- orphaned_publications(older, limit) -> publications that are due and have no delivery for so long
--
-- Their command was lost or is late, with JetStream or without: whoever asks handles them as if it had come.
CREATE OR REPLACE FUNCTION orphaned_publications(p_older interval, p_limit int)
RETURNS TABLE (workspace_id uuid, publication_id uuid, version int, traceparent text)
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
    SELECT p.workspace_id, p.publication_id, p.version, p.traceparent
    FROM publications p
    JOIN workspaces w
      ON w.workspace_id = p.workspace_id
     AND w.status = 'active'
    WHERE p.status = 'publishing'
      AND p.delivery_id IS NULL
      AND p.updated_at <= clock_timestamp() - p_older
    ORDER BY p.updated_at
    LIMIT p_limit
$$;
