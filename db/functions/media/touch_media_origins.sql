-- touch_media_origins(workspace_id, blob_refs) -> nothing
--
-- Somebody is about to name these: from here on they are young, so that nobody collects them before that is committed.
-- What was seen within the hour is young enough, and costs no write.
--
-- Locks     media_origin by key, waiting for whoever marks one of them for deletion
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
