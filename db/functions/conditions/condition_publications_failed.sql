-- condition_publications_failed(at_least) -> the workspaces with so many publications that have failed
--
-- One counts until it is retried, edited or cancelled.
CREATE OR REPLACE FUNCTION condition_publications_failed(p_at_least bigint)
RETURNS TABLE (workspace_id uuid, found bigint, since timestamptz, causes jsonb)
LANGUAGE sql
STABLE
AS $$
    SELECT p.workspace_id, p.found, p.since, p.causes
    FROM troubled_publications('failed') AS p
    WHERE p.found >= p_at_least
$$;
