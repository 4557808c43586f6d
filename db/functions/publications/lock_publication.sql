-- lock_publication(workspace_id, publication_id, version) -> as find_publication, with the row locked before it looks
--
-- Locks     publications by key
CREATE OR REPLACE FUNCTION lock_publication(
    p_workspace_id uuid,
    p_publication_id uuid,
    p_version int,
    OUT verdict text,
    OUT publication publications
)
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
DECLARE
    _found record;
BEGIN
    PERFORM 1
    FROM publications p
    WHERE p.workspace_id = p_workspace_id
      AND p.publication_id = p_publication_id
    FOR NO KEY UPDATE;
    _found := find_publication(p_workspace_id, p_publication_id, p_version);
    verdict := _found.verdict;
    publication := _found.publication;
END $$;
