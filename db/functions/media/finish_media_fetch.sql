-- finish_media_fetch(workspace_id, url_hash, lease_token, blob_ref, origin_url, sha256, content_type, …)
--
-- The bytes of a fetch are in the store: they become an origin, and all posts that wait for the URL have them. A stored
-- object is valid whatever lease stored it, so the origin needs no fence; the fetch ends only for its holder. Old
-- fetches without unregistered objects are deleted, a few at a time.
--
-- Locks     media_origin, media_fetches by key
CREATE OR REPLACE FUNCTION finish_media_fetch(
    p_workspace_id uuid,
    p_url_hash text,
    p_lease_token uuid,
    p_blob_ref text,
    p_origin_url text,
    p_sha256 text,
    p_content_type text,
    p_size_bytes bigint,
    p_width int,
    p_height int,
    p_name text
)
RETURNS void
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
BEGIN
    PERFORM remember_media_origin(p_workspace_id, p_blob_ref, p_origin_url, p_sha256, p_content_type, p_size_bytes,
                                  p_width, p_height, p_name);
    UPDATE media_fetches m
    SET puts = array_remove(m.puts, p_blob_ref),
        blob_ref = CASE WHEN m.lease_token = p_lease_token THEN p_blob_ref ELSE m.blob_ref END,
        finished_at = CASE WHEN m.lease_token = p_lease_token THEN clock_timestamp() ELSE m.finished_at END
    WHERE m.workspace_id = p_workspace_id
      AND m.url_hash = p_url_hash;

    WITH old AS MATERIALIZED (
        SELECT m.url_hash
        FROM media_fetches m
        WHERE m.workspace_id = p_workspace_id
          AND m.started_at < (SELECT clock_timestamp() - interval '1 day')
          AND m.puts = '{}'
        ORDER BY m.started_at
        LIMIT 10
        FOR UPDATE SKIP LOCKED
    )
    DELETE FROM media_fetches m
    USING old o
    WHERE m.workspace_id = p_workspace_id
      AND m.url_hash = o.url_hash;
END $$;
