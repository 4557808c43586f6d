-- take_media_fetch(workspace_id, post_id, lease_token, url_hash) -> whether this post's worker fetches the URL
--
-- A URL is fetched by one post of a workspace at a time, on all replicas together. What was fetched after a post was
-- accepted is as fresh as its own fetch would be, also when the post had to start again.
--
-- Verdicts     held     fetched already, as blob_ref
--              ours     to be fetched now, by the holder of this lease
--              busy     another post is fetching it: ask again. Its claim on the URL ends with its lease.
--              stale    the lease has passed on
-- Changes      media_fetches.post_id, lease_token
-- Locks        media_origin (see touch_media_origins), media_fetches: each by key
CREATE OR REPLACE FUNCTION take_media_fetch(
    p_workspace_id uuid,
    p_post_id uuid,
    p_lease_token uuid,
    p_url_hash text
)
RETURNS TABLE (verdict text, blob_ref text, content_type text, size_bytes bigint)
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    _since timestamptz;
    _found record;
BEGIN
    SELECT s.created_at
    INTO _since
    FROM staged_posts s
    WHERE s.workspace_id = p_workspace_id
      AND s.post_id = p_post_id
      AND s.lease_token = p_lease_token
      AND s.status = 'fetching';
    IF NOT FOUND THEN
        RETURN QUERY SELECT 'stale', NULL::text, NULL::text, NULL::bigint;
        RETURN;
    END IF;

    PERFORM touch_media_origins(p_workspace_id, array_agg(m.blob_ref))
    FROM media_fetches m
    WHERE m.workspace_id = p_workspace_id
      AND m.url_hash = p_url_hash
      AND m.finished_at > _since;
    INSERT INTO media_fetches (workspace_id, url_hash)
    VALUES (p_workspace_id, p_url_hash)
    ON CONFLICT DO NOTHING;
    PERFORM 1
    FROM media_fetches m
    WHERE m.workspace_id = p_workspace_id
      AND m.url_hash = p_url_hash
    FOR UPDATE;
    SELECT o.blob_ref, o.content_type, o.size_bytes,
           m.finished_at IS NULL AND EXISTS (
               SELECT 1
               FROM staged_posts s
               WHERE s.workspace_id = p_workspace_id
                 AND s.post_id = m.post_id
                 AND s.post_id <> p_post_id
                 AND s.lease_token = m.lease_token
                 AND s.status = 'fetching'
                 AND s.lease_until > clock_timestamp()
           ) AS busy
    INTO _found
    FROM media_fetches m
    LEFT JOIN media_origin o
      ON o.workspace_id = m.workspace_id
     AND o.blob_ref = m.blob_ref
     AND m.finished_at > _since
     AND o.deletion_token IS NULL
    WHERE m.workspace_id = p_workspace_id
      AND m.url_hash = p_url_hash;
    IF _found.blob_ref IS NOT NULL THEN
        RETURN QUERY SELECT 'held', _found.blob_ref, _found.content_type, _found.size_bytes;
        RETURN;
    END IF;
    IF _found.busy THEN
        RETURN QUERY SELECT 'busy', NULL::text, NULL::text, NULL::bigint;
        RETURN;
    END IF;

    UPDATE media_fetches m
    SET post_id = p_post_id,
        lease_token = p_lease_token,
        blob_ref = NULL,
        started_at = clock_timestamp(),
        finished_at = NULL
    WHERE m.workspace_id = p_workspace_id
      AND m.url_hash = p_url_hash;
    RETURN QUERY SELECT 'ours', NULL::text, NULL::text, NULL::bigint;
END $$;
