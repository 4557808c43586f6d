-- unschedule_publication(workspace_id, publication_id, version, by) -> {"verdict", "publication"}
--
-- Takes the time away from a publication that has not begun; it stays approved.
--
-- Verdicts  unscheduled, not_found, stale, not_scheduled
-- Appends   publication_approved
-- Locks     publications by key
CREATE OR REPLACE FUNCTION unschedule_publication(p_workspace_id uuid, p_publication_id uuid, p_version int, p_by text)
RETURNS jsonb
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
DECLARE
    _locked record := lock_publication(p_workspace_id, p_publication_id, p_version);
    _after publications;
BEGIN
    IF _locked.verdict IS NULL
       AND ((_locked.publication).status NOT IN ('scheduled', 'publishing') OR (_locked.publication).delivery_id IS NOT NULL) THEN
        _locked.verdict := 'not_scheduled';
    END IF;
    IF _locked.verdict IS NOT NULL THEN
        RETURN publication_refusal(_locked.verdict, _locked.publication);
    END IF;
    UPDATE publications p
    SET status = 'approved',
        scheduled_at = NULL,
        version = p.version + 1,
        changed_by = p_by,
        updated_at = clock_timestamp()
    WHERE p.workspace_id = p_workspace_id
      AND p.publication_id = p_publication_id
    RETURNING p.* INTO _after;
    RETURN jsonb_build_object('verdict', 'unscheduled', 'publication', publication_document(_after));
END $$;
