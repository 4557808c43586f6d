-- read_media_origins(workspace_id, blob_refs) -> what is known of the stored media that a post uses
--
-- A ref that this workspace has not stored has no row, even if another workspace has it; nor has one that is being
-- deleted. The objects found stay at least until tomorrow: the caller is about to refer to them.
--
-- Locks     media_origin by key; see touch_media_origins
CREATE OR REPLACE FUNCTION read_media_origins(p_workspace_id uuid, p_blob_refs text[])
RETURNS TABLE (blob_ref text, content_type text, size_bytes bigint, width int, height int, name text)
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
#variable_conflict use_column
BEGIN
    PERFORM touch_media_origins(p_workspace_id, p_blob_refs);
    RETURN QUERY
    SELECT o.blob_ref, o.content_type, o.size_bytes, o.width, o.height, o.name
    FROM media_origin o
    WHERE o.workspace_id = p_workspace_id
      AND o.blob_ref = ANY (p_blob_refs)
      AND o.deletion_token IS NULL;
END $$;
