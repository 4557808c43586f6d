-- lock_publication(workspace_id, publication_id, version) -> {"verdict": why it cannot be changed, or null, "publication"}
--
-- Takes the row lock, then looks: whoever asks with a version that is not the current one learns of the change first.
--
-- Verdicts  not_found, stale (`publication` shows what it is now)
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
BEGIN
    SELECT p.*
    INTO publication
    FROM publications p
    WHERE p.workspace_id = p_workspace_id
      AND p.publication_id = p_publication_id
    FOR NO KEY UPDATE;
    verdict := CASE
        WHEN publication.publication_id IS NULL THEN 'not_found'
        WHEN publication.version <> p_version THEN 'stale'
    END;
END $$;
