-- touch_media_origins(workspace_id, blob_refs) -> nothing
--
-- The caller is about to refer to these objects: they count as used now, so that none is deleted before the commit.
-- An object used within the hour needs no write.
--
-- Locks     media_origin by key, waiting for a transaction that marks one of them for deletion
CREATE OR REPLACE FUNCTION touch_media_origins(p_workspace_id uuid, p_blob_refs text[])
RETURNS void
LANGUAGE sql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    WITH old AS MATERIALIZED (
        SELECT o.blob_ref
        FROM media_origin o
        WHERE o.workspace_id = p_workspace_id
          AND o.blob_ref = ANY (p_blob_refs)
          AND o.last_seen_at < clock_timestamp() - interval '1 hour'
          AND o.deletion_token IS NULL
        ORDER BY o.blob_ref
        FOR NO KEY UPDATE
    )
    UPDATE media_origin o
    SET last_seen_at = clock_timestamp()
    FROM old
    WHERE o.workspace_id = p_workspace_id
      AND o.blob_ref = old.blob_ref
$$;
