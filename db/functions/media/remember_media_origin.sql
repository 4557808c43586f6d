-- remember_media_origin(workspace_id, blob_ref, origin_url, sha256, content_type, size_bytes, width, height, name)
--
-- Registers a stored blob: where its bytes are, and what they are. A repeated call moves last_seen_at and updates what
-- it gives; null keeps the stored value.
--
-- origin_url   s3://<bucket>/<workspace_id>/media/<sha256 in hex>
-- Locks        media_origin, by key
-- Raises       AP012 while the object is being deleted: it may be gone in a moment. note_media_put says before the
--              write whether it is allowed.
CREATE OR REPLACE FUNCTION remember_media_origin(
    p_workspace_id uuid,
    p_blob_ref text,
    p_origin_url text,
    p_sha256 text,
    p_content_type text,
    p_size_bytes bigint,
    p_width int DEFAULT NULL,
    p_height int DEFAULT NULL,
    p_name text DEFAULT NULL
)
RETURNS void
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
BEGIN
    INSERT INTO media_origin AS o (workspace_id, blob_ref, origin_url, sha256, content_type, size_bytes, width, height,
                                   name, last_seen_at)
    VALUES (p_workspace_id, p_blob_ref, p_origin_url, p_sha256, p_content_type, p_size_bytes, p_width, p_height,
            p_name, clock_timestamp())
    ON CONFLICT (workspace_id, blob_ref) DO UPDATE
    SET origin_url = excluded.origin_url,
        sha256 = coalesce(excluded.sha256, o.sha256),
        content_type = coalesce(excluded.content_type, o.content_type),
        size_bytes = coalesce(excluded.size_bytes, o.size_bytes),
        width = coalesce(excluded.width, o.width),
        height = coalesce(excluded.height, o.height),
        name = coalesce(excluded.name, o.name),
        last_seen_at = greatest(excluded.last_seen_at, o.last_seen_at),
        deleting_until = NULL,
        deletion_token = NULL
    WHERE o.deleting_until IS NULL OR o.deleting_until < clock_timestamp();
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the object is being deleted' USING ERRCODE = 'AP012', HINT = 'store it again in a moment';
    END IF;
END $$;
