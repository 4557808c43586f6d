-- finish_media_deletion(workspace_id, blob_ref, deletion_token) -> whether the mark was still the caller's
--
-- The object was deleted from the store. Deletes its row in media_origin and the uploads of it (media_blobs).
-- False when another call has taken over the mark: then that caller finishes the deletion.
--
-- Locks     media_origin, media_blobs: each by key
CREATE OR REPLACE FUNCTION finish_media_deletion(p_workspace_id uuid, p_blob_ref text, p_deletion_token uuid)
RETURNS boolean
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
BEGIN
    DELETE FROM media_origin o
    WHERE o.workspace_id = p_workspace_id
      AND o.blob_ref = p_blob_ref
      AND o.deletion_token = p_deletion_token;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    DELETE FROM media_blobs b
    WHERE b.workspace_id = p_workspace_id
      AND b.blob_ref = p_blob_ref;
    RETURN true;
END $$;
