-- find_publication(workspace_id, publication_id, version) -> {"verdict": why it cannot be changed, or null, "publication"}
--
-- Whoever asks with a version that is not the current one learns of the change first. A null version is any.
--
-- Verdicts  not_found, stale (`publication` shows what it is now)
CREATE OR REPLACE FUNCTION find_publication(
    p_workspace_id uuid,
    p_publication_id uuid,
    p_version int,
    OUT verdict text,
    OUT publication publications
)
LANGUAGE plpgsql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
BEGIN
    SELECT p.*
    INTO publication
    FROM publications p
    WHERE p.workspace_id = p_workspace_id
      AND p.publication_id = p_publication_id;
    verdict := CASE
        WHEN publication.publication_id IS NULL THEN 'not_found'
        WHEN publication.version <> p_version THEN 'stale'
    END;
END $$;
