-- note_media_put(workspace_id, url_hash, lease_token, blob_ref) -> whether the object may be written now
--
-- Said before the bytes of a fetch are stored, so that whatever happens next the object is known: in puts until
-- finish_media_fetch has made it an origin. False when the fetch has passed on.
--
-- Locks     media_fetches by key
CREATE OR REPLACE FUNCTION note_media_put(p_workspace_id uuid, p_url_hash text, p_lease_token uuid, p_blob_ref text)
RETURNS boolean
LANGUAGE sql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    WITH noted AS (
        UPDATE media_fetches m
        SET puts = array_append(array_remove(m.puts, p_blob_ref), p_blob_ref)
        WHERE m.workspace_id = p_workspace_id
          AND m.url_hash = p_url_hash
          AND m.lease_token = p_lease_token
        RETURNING 1
    )
    SELECT EXISTS (SELECT 1 FROM noted)
$$;
