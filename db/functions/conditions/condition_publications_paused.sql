-- condition_publications_paused(at_least) -> the workspaces with so many publications that wait for a person
CREATE OR REPLACE FUNCTION condition_publications_paused(p_at_least bigint)
RETURNS TABLE (workspace_id uuid, found bigint, since timestamptz, causes jsonb)
LANGUAGE sql
STABLE
AS $$
    SELECT p.workspace_id, p.found, p.since, p.causes
    FROM troubled_publications('paused') AS p
    WHERE p.found >= p_at_least
$$;
