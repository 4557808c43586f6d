-- edit_publication(workspace_id, publication_id, version, publication, by) -> {"verdict", "publication"}
--
-- Gives a publication another content, channel or owner. It is a draft again: an approval is of what was approved.
--
-- publication  as for draft_publication; what it leaves out stays
-- Verdicts     edited, not_found, stale, not_editable (it is being sent, has ended, or nobody knows yet
--              whether it was sent; `publication` shows which), unknown_channel
-- Appends      publication_drafted
-- Locks        publications by key
CREATE OR REPLACE FUNCTION edit_publication(
    p_workspace_id uuid,
    p_publication_id uuid,
    p_version int,
    p_publication jsonb,
    p_by text
)
RETURNS jsonb
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
DECLARE
    _locked record := lock_publication(p_workspace_id, p_publication_id, p_version);
    _wanted publications;
BEGIN
    IF _locked.verdict IS NULL AND ((_locked.publication).status NOT IN ('draft', 'approved', 'scheduled', 'paused', 'failed')
            OR (_locked.publication).pause_code = 'unconfirmed') THEN
        _locked.verdict := 'not_editable';
    END IF;
    IF _locked.verdict IS NOT NULL THEN
        RETURN publication_refusal(_locked.verdict, _locked.publication);
    END IF;
    _wanted := jsonb_populate_record(
        _locked.publication,
        (SELECT coalesce(jsonb_object_agg(g.key, g.value), '{}')
         FROM jsonb_each(p_publication) AS g
         WHERE g.key IN ('channel_id', 'creative_draft', 'media_type', 'owner', 'timezone', 'late_after')));
    IF NOT has_channel(p_workspace_id, _wanted.channel_id) THEN
        RETURN jsonb_build_object('verdict', 'unknown_channel');
    END IF;
    UPDATE publications p
    SET channel_id = _wanted.channel_id,
        creative_draft = _wanted.creative_draft,
        media_type = _wanted.media_type,
        owner = _wanted.owner,
        timezone = _wanted.timezone,
        late_after = _wanted.late_after,
        status = 'draft',
        version = p.version + 1,
        scheduled_at = NULL,
        approved_by = NULL,
        approved_at = NULL,
        approved_plan_hash = NULL,
        hash_version = NULL,
        content_hash = NULL,
        delivery_id = NULL,
        settled_at = NULL,
        pause_code = NULL,
        last_error = NULL,
        changed_by = p_by,
        updated_at = clock_timestamp()
    WHERE p.workspace_id = p_workspace_id
      AND p.publication_id = p_publication_id
    RETURNING p.* INTO _wanted;
    RETURN jsonb_build_object('verdict', 'edited', 'publication', publication_document(_wanted));
END $$;
