-- retain_media_blobs(keep, after, limit) -> {"gone", "after"}
--
-- Deletes the uploads of blobs that have no origin and that nothing refers to: no claim will need them. Walks by key:
-- begin with {}, until `after` is null. An expired id whose origin exists stays: the next upload replaces it, and it is
-- deleted with its origin.
--
-- Locks     media_blobs by key, SKIP LOCKED
CREATE OR REPLACE FUNCTION retain_media_blobs(p_keep interval, p_after jsonb, p_limit int)
RETURNS jsonb
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
SET enable_seqscan = off
AS $$
DECLARE
    _after_workspace uuid := coalesce(p_after ->> 'workspace_id', '00000000-0000-0000-0000-000000000000')::uuid;
    _after_ref text := coalesce(p_after ->> 'blob_ref', '');
    _gone int;
    _page jsonb;
BEGIN
    WITH page AS MATERIALIZED (
        SELECT b.workspace_id, b.blob_ref
        FROM media_blobs b
        WHERE (b.workspace_id, b.blob_ref) > (_after_workspace, _after_ref)
        GROUP BY b.workspace_id, b.blob_ref
        ORDER BY b.workspace_id, b.blob_ref
        LIMIT p_limit
    ), held AS MATERIALIZED (
        SELECT b.*
        FROM page p
        CROSS JOIN LATERAL (
            SELECT b.workspace_id, b.blob_ref, b.provider, b.bot_id
            FROM media_blobs b
            WHERE b.workspace_id = p.workspace_id
              AND b.blob_ref = p.blob_ref
              AND b.updated_at < clock_timestamp() - p_keep
            FOR UPDATE SKIP LOCKED
        ) AS b
        WHERE NOT EXISTS (
            SELECT 1
            FROM media_origin o
            WHERE o.workspace_id = p.workspace_id
              AND o.blob_ref = p.blob_ref
        )
          AND NOT media_is_live(p.workspace_id, p.blob_ref)
    ), gone AS (
        DELETE FROM media_blobs b
        USING held h
        WHERE b.workspace_id = h.workspace_id
          AND b.blob_ref = h.blob_ref
          AND b.provider = h.provider
          AND b.bot_id = h.bot_id
        RETURNING 1
    )
    SELECT (SELECT count(*) FROM gone),
           CASE WHEN (SELECT count(*) FROM page) = p_limit THEN (
               SELECT to_jsonb(p) FROM page p ORDER BY p.workspace_id DESC, p.blob_ref DESC LIMIT 1
           ) END
    INTO _gone, _page;
    RETURN jsonb_build_object('gone', _gone, 'after', _page);
END $$;
