-- bury_media(workspace_id, blob_ref, doom) -> whether the object was still this caller's to collect
--
-- The object is gone from the store: its origin goes, and what providers hold of it is no longer remembered. False when
-- the mark has passed on; whoever has it now will do this.
--
-- Locks     media_origin, media_blobs: each by key
CREATE OR REPLACE FUNCTION bury_media(p_workspace_id uuid, p_blob_ref text, p_doom uuid)
RETURNS boolean
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
BEGIN
    DELETE FROM media_origin o
    WHERE o.workspace_id = p_workspace_id
      AND o.blob_ref = p_blob_ref
      AND o.doom = p_doom;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    DELETE FROM media_blobs b
    WHERE b.workspace_id = p_workspace_id
      AND b.blob_ref = p_blob_ref;
    RETURN true;
END $$;
