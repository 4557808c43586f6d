-- draft_publication(workspace_id, publication, by) -> {"verdict", "publication"}
--
-- publication  {"channel_id", "creative_draft", "media_type", "owner", "timezone", "late_after", "trace_id"}
-- Verdicts     drafted, unknown_channel
-- Appends      publication_drafted
CREATE OR REPLACE FUNCTION draft_publication(p_workspace_id uuid, p_publication jsonb, p_by text)
RETURNS jsonb
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
DECLARE
    _given publications := jsonb_populate_record(NULL::publications, p_publication);
    _made publications;
BEGIN
    IF NOT has_channel(p_workspace_id, _given.channel_id) THEN
        RETURN jsonb_build_object('verdict', 'unknown_channel');
    END IF;
    INSERT INTO publications (workspace_id, channel_id, creative_draft, media_type, owner, timezone, late_after,
                              trace_id, created_by, changed_by)
    VALUES (p_workspace_id, _given.channel_id, _given.creative_draft, _given.media_type, _given.owner, _given.timezone,
            coalesce(_given.late_after, interval '24 hours'), _given.trace_id, p_by, p_by)
    RETURNING * INTO _made;
    RETURN jsonb_build_object('verdict', 'drafted', 'publication', publication_document(_made));
END $$;
