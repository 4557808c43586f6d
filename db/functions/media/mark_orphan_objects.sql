-- mark_orphan_objects(bucket, lease, limit) -> {"deletions": […], "after": null}
--
-- Orphans are objects that a fetch was about to write and never registered in media_origin. They may exist in the store
-- and nothing refers to them. This marks them as mark_media_for_deletion does, with a row in media_origin that readers
-- do not see. When another fetch has registered the object, only the note in media_fetches is removed. A fetch counts
-- as failed after a day.
--
-- Changes      media_origin, media_fetches.puts
-- Locks        the names of the objects, so that no fetch notes a put of one meanwhile; then media_origin and
--              media_fetches, each by key
CREATE OR REPLACE FUNCTION mark_orphan_objects(p_bucket text, p_lease interval, p_limit int)
RETURNS jsonb
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
SET enable_seqscan = off
AS $$
DECLARE
    _strays jsonb;
    _deletions jsonb;
BEGIN
    SELECT coalesce(jsonb_agg(DISTINCT to_jsonb(s)), '[]')
    INTO _strays
    FROM (
        SELECT f.workspace_id, put.blob_ref
        FROM media_fetches f
        CROSS JOIN LATERAL unnest(f.puts) AS put (blob_ref)
        WHERE f.puts <> '{}'
          AND f.started_at < (SELECT clock_timestamp() - interval '1 day')
          AND NOT media_is_live(f.workspace_id, put.blob_ref)
        ORDER BY f.started_at
        LIMIT p_limit
    ) AS s;

    PERFORM pg_advisory_xact_lock(l.key)
    FROM (
        SELECT hashtextextended(s.workspace_id || s.blob_ref, 0) AS key
        FROM jsonb_to_recordset(_strays) AS s (workspace_id uuid, blob_ref text)
        ORDER BY key
    ) AS l;
    WITH marked AS (
        INSERT INTO media_origin AS o (workspace_id, blob_ref, origin_url, last_seen_at, deleting_until, deletion_token)
        SELECT s.workspace_id, s.blob_ref,
               format('s3://%s/%s/media/%s', p_bucket, s.workspace_id, replace(s.blob_ref, 'sha256:', '')),
               '-infinity', clock_timestamp() + p_lease, gen_random_uuid()
        FROM jsonb_to_recordset(_strays) AS s (workspace_id uuid, blob_ref text)
        WHERE NOT media_is_live(s.workspace_id, s.blob_ref)
        ORDER BY s.workspace_id, s.blob_ref
        ON CONFLICT DO NOTHING
        RETURNING o.workspace_id, o.blob_ref, o.origin_url, o.deletion_token
    )
    SELECT coalesce(jsonb_agg(to_jsonb(d)), '[]') INTO _deletions FROM marked d;

    -- From here on the object is registered in media_origin, whether it is live or to be deleted.
    WITH known AS MATERIALIZED (
        SELECT f.workspace_id, f.url_hash, array_agg(s.blob_ref) AS refs
        FROM jsonb_to_recordset(_strays) AS s (workspace_id uuid, blob_ref text)
        JOIN media_origin o
          ON o.workspace_id = s.workspace_id
         AND o.blob_ref = s.blob_ref
        JOIN media_fetches f
          ON f.workspace_id = s.workspace_id
         AND f.puts @> ARRAY[s.blob_ref]
         AND f.puts <> '{}'
         AND f.started_at < (SELECT clock_timestamp() - interval '1 day')
        GROUP BY f.workspace_id, f.url_hash
    ), held AS MATERIALIZED (
        SELECT f.workspace_id, f.url_hash, k.refs
        FROM known k
        JOIN media_fetches f USING (workspace_id, url_hash)
        WHERE f.started_at < (SELECT clock_timestamp() - interval '1 day')
        ORDER BY f.workspace_id, f.url_hash
        FOR UPDATE OF f SKIP LOCKED
    )
    UPDATE media_fetches f
    SET puts = ARRAY(SELECT put FROM unnest(f.puts) AS put WHERE put <> ALL (h.refs))
    FROM held h
    WHERE f.workspace_id = h.workspace_id
      AND f.url_hash = h.url_hash;
    RETURN jsonb_build_object('deletions', _deletions, 'after', NULL);
END $$;
