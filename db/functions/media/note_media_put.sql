-- note_media_put(workspace_id, url_hash, lease_token, blob_ref) -> whether the object may be written now
--
-- Called before the bytes of a fetch are stored, so that the object is known whatever happens next: it is in puts until
-- finish_media_fetch has made it an origin, and until then it is not deleted. False when the fetch has passed on.
-- False also while the same object is being deleted: it could be gone right after it was written. The post is then
-- given back, and its next worker finds the deletion finished.
--
-- Changes   media_fetches.puts; fetching -> staged, without counting the attempt
-- Locks     the name of the object, then media_origin, media_fetches, staged_posts: each by key
CREATE OR REPLACE FUNCTION note_media_put(p_workspace_id uuid, p_url_hash text, p_lease_token uuid, p_blob_ref text)
RETURNS boolean
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
DECLARE
    _deleting_until timestamptz;
    _post_id uuid;
BEGIN
    -- An object without an origin has no row to lock; mark_orphan_objects takes the same lock.
    PERFORM pg_advisory_xact_lock(hashtextextended(p_workspace_id || p_blob_ref, 0));
    SELECT o.deleting_until
    INTO _deleting_until
    FROM media_origin o
    WHERE o.workspace_id = p_workspace_id
      AND o.blob_ref = p_blob_ref
    FOR NO KEY UPDATE;

    IF _deleting_until >= clock_timestamp() THEN
        SELECT m.post_id
        INTO _post_id
        FROM media_fetches m
        WHERE m.workspace_id = p_workspace_id
          AND m.url_hash = p_url_hash
          AND m.lease_token = p_lease_token;
        PERFORM release_staged_post(p_workspace_id, _post_id, p_lease_token);
        UPDATE staged_posts s
        SET next_attempt_at = clock_timestamp() + interval '2 seconds'
        WHERE s.workspace_id = p_workspace_id
          AND s.post_id = _post_id
          AND s.status = 'staged';
        RETURN false;
    END IF;

    UPDATE media_fetches m
    SET puts = array_append(array_remove(m.puts, p_blob_ref), p_blob_ref)
    WHERE m.workspace_id = p_workspace_id
      AND m.url_hash = p_url_hash
      AND m.lease_token = p_lease_token;
    RETURN FOUND;
END $$;
