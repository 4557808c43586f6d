-- mark_media_for_deletion(bucket, keep, keep_large, large_bytes, lease, after, limit) -> {"deletions": […], "after"}
--
-- The first of three steps that delete an object: mark it, delete it from the store, finish_media_deletion. Readers do
-- not see a marked object. A fetch of the same bytes waits (note_media_put). The mark expires after `lease`: the
-- caller deletes within that time or not at all. A later call takes over an expired mark.
--
-- Chosen       objects in this bucket that nothing refers to (media_is_live) and that were not used for `keep`, or
--              for `keep_large` when it is a video of at least large_bytes. Never an object that was used within the
--              last day: a post may be about to refer to it.
-- deletions    [{"workspace_id", "blob_ref", "origin_url", "deletion_token"}]
-- after        where to go on: begin with {}, until it is null
-- Locks        media_origin by key, SKIP LOCKED
CREATE OR REPLACE FUNCTION mark_media_for_deletion(
    p_bucket text,
    p_keep interval,
    p_keep_large interval,
    p_large_bytes bigint,
    p_lease interval,
    p_after jsonb,
    p_limit int
)
RETURNS jsonb
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
SET enable_seqscan = off
AS $$
DECLARE
    _now timestamptz := clock_timestamp();
    _cutoff timestamptz := _now - greatest(p_keep, interval '1 day');
    _cutoff_large timestamptz := _now - greatest(p_keep_large, interval '1 day');
    _after_at timestamptz := coalesce((p_after ->> 'last_seen_at')::timestamptz, '-infinity');
    _after_ref text := coalesce(p_after ->> 'blob_ref', '');
    _workspaces uuid[];
    _refs text[];
    _page jsonb;
    _deletions jsonb;
BEGIN
    WITH page AS MATERIALIZED (
        SELECT o.workspace_id, o.blob_ref, o.last_seen_at
        FROM media_origin o
        WHERE o.last_seen_at < greatest(_cutoff, _cutoff_large)
          AND o.last_seen_at >= _after_at
          AND (o.last_seen_at, o.blob_ref) > (_after_at, _after_ref)
        ORDER BY o.last_seen_at, o.blob_ref
        LIMIT p_limit
    ), held AS MATERIALIZED (
        SELECT o.workspace_id, o.blob_ref
        FROM (SELECT * FROM page p ORDER BY p.workspace_id, p.blob_ref) AS p
        CROSS JOIN LATERAL (
            SELECT o.workspace_id, o.blob_ref
            FROM media_origin o
            WHERE o.workspace_id = p.workspace_id
              AND o.blob_ref = p.blob_ref
              AND (o.deleting_until IS NULL OR o.deleting_until < _now)
              AND starts_with(o.origin_url, format('s3://%s/', p_bucket))
              AND o.last_seen_at < CASE
                      WHEN o.content_type LIKE 'video/%' AND o.size_bytes >= p_large_bytes THEN _cutoff_large
                      ELSE _cutoff
                  END
              AND NOT media_is_live(o.workspace_id, o.blob_ref)
            FOR UPDATE SKIP LOCKED
        ) AS o
    )
    SELECT array_agg(h.workspace_id), array_agg(h.blob_ref),
           CASE WHEN (SELECT count(*) FROM page) = p_limit THEN (
               SELECT jsonb_build_object('last_seen_at', p.last_seen_at, 'blob_ref', p.blob_ref)
               FROM page p
               ORDER BY p.last_seen_at DESC, p.blob_ref DESC
               LIMIT 1
           ) END
    INTO _workspaces, _refs, _page
    FROM held h;

    -- A new statement, so that it sees a put that was noted while it waited for the lock.
    WITH marked AS (
        UPDATE media_origin o
        SET deleting_until = clock_timestamp() + p_lease,
            deletion_token = gen_random_uuid()
        FROM unnest(_workspaces, _refs) AS k (workspace_id, blob_ref)
        WHERE o.workspace_id = k.workspace_id
          AND o.blob_ref = k.blob_ref
          AND NOT media_is_live(o.workspace_id, o.blob_ref)
        RETURNING o.workspace_id, o.blob_ref, o.origin_url, o.deletion_token
    )
    SELECT coalesce(jsonb_agg(to_jsonb(d)), '[]') INTO _deletions FROM marked d;
    RETURN jsonb_build_object('deletions', _deletions, 'after', _page);
END $$;
