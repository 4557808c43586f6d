-- approve_publication(workspace_id, publication_id, version, plan, by) -> {"verdict", "publication"}
--
-- The caller has compiled the plan for the channel and shown it: what is approved is this plan and no other.
--
-- plan      {"plan_hash", "hash_version", "content_hash"}
-- Verdicts  approved, not_found, stale, not_a_draft
-- Appends   publication_approved, with the plan_hash
-- Locks     publications by key
CREATE OR REPLACE FUNCTION approve_publication(
    p_workspace_id uuid,
    p_publication_id uuid,
    p_version int,
    p_plan jsonb,
    p_by text
)
RETURNS jsonb
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
DECLARE
    _locked record := lock_publication(p_workspace_id, p_publication_id, p_version);
    _approved publications;
BEGIN
    IF _locked.verdict IS NULL AND (_locked.publication).status <> 'draft' THEN
        _locked.verdict := 'not_a_draft';
    END IF;
    IF _locked.verdict IS NOT NULL THEN
        RETURN publication_refusal(_locked.verdict, _locked.publication);
    END IF;
    UPDATE publications p
    SET status = 'approved',
        approved_by = p_by,
        approved_at = clock_timestamp(),
        approved_plan_hash = p_plan ->> 'plan_hash',
        hash_version = (p_plan ->> 'hash_version')::int,
        content_hash = p_plan ->> 'content_hash',
        changed_by = p_by,
        updated_at = clock_timestamp()
    WHERE p.workspace_id = p_workspace_id
      AND p.publication_id = p_publication_id
    RETURNING p.* INTO _approved;
    RETURN jsonb_build_object('verdict', 'approved', 'publication', publication_document(_approved));
END $$;
