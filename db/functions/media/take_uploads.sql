-- take_uploads(workspace_id, delivery_id, claim_token, provider, bot_id, blob_refs, kinds) -> one row per blob
--
-- Before a claim sends media: what the provider already holds for this bot, and what this claim must upload.
-- A blob is uploaded by one claim at a time, on all replicas together. All missing ones are taken, or none.
--
-- Verdicts     held     under provider_id, as this kind (a photo's id is no good for a document)
--              ours     missing, and now this claim's to upload: its origin comes with it
--              busy     another claim is uploading it: nothing was taken, ask again. It ends with that claim, or when
--                       it takes longer than five seconds and one for every megabyte: a second upload is better than
--                       letting all channels wait for a worker that died or a platform that does not answer.
--              missing  not uploaded, and the origin is gone
-- Changes      media_blobs.upload_*
-- Locks        media_blobs by key
CREATE OR REPLACE FUNCTION take_uploads(
    p_workspace_id uuid,
    p_delivery_id uuid,
    p_claim_token uuid,
    p_provider text,
    p_bot_id text,
    p_blob_refs text[],
    p_kinds text[]
)
RETURNS TABLE (
    blob_ref text,
    verdict text,
    provider_id text,
    origin_url text,
    sha256 text,
    content_type text,
    size_bytes bigint,
    name text
)
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
SET enable_seqscan = off
AS $$
#variable_conflict use_column
BEGIN
    INSERT INTO media_blobs (workspace_id, blob_ref, provider, bot_id)
    SELECT DISTINCT p_workspace_id, w.blob_ref, p_provider, p_bot_id
    FROM unnest(p_blob_refs) AS w (blob_ref)
    ORDER BY w.blob_ref
    ON CONFLICT DO NOTHING;
    PERFORM 1
    FROM media_blobs b
    WHERE b.workspace_id = p_workspace_id
      AND b.provider = p_provider
      AND b.bot_id = p_bot_id
      AND b.blob_ref = ANY (p_blob_refs)
    ORDER BY b.blob_ref
    FOR UPDATE;

    RETURN QUERY
    WITH asked AS MATERIALIZED (
        SELECT b.blob_ref, b.file_id, o.origin_url, o.sha256, o.content_type, o.size_bytes, o.name,
               CASE
                   WHEN b.file_id IS NOT NULL
                    AND b.meta ->> 'kind' = w.kind
                    AND coalesce(b.expires_at, 'infinity') > clock_timestamp() THEN 'held'
                   WHEN (b.upload_delivery_id, b.upload_token) <> (p_delivery_id, p_claim_token)
                    AND b.updated_at + make_interval(secs => 5 + coalesce(o.size_bytes, 0) / 1e6) > clock_timestamp()
                    AND EXISTS (
                       SELECT 1
                       FROM deliveries d
                       WHERE d.workspace_id = p_workspace_id
                         AND d.delivery_id = b.upload_delivery_id
                         AND d.claim_token = b.upload_token
                         AND d.status = 'sending'
                         AND d.sending_lease_until > clock_timestamp()
                   ) THEN 'busy'
                   WHEN o.blob_ref IS NULL THEN 'missing'
                   ELSE 'ours'
               END AS verdict
        FROM (
            SELECT DISTINCT ON (g.blob_ref) g.blob_ref, g.kind
            FROM unnest(p_blob_refs, p_kinds) AS g (blob_ref, kind)
            ORDER BY g.blob_ref
        ) AS w
        CROSS JOIN LATERAL ( -- each by key, whatever the planner estimates
            SELECT b.*
            FROM media_blobs b
            WHERE b.workspace_id = p_workspace_id
              AND b.blob_ref = w.blob_ref
              AND b.provider = p_provider
              AND b.bot_id = p_bot_id
            LIMIT 1
        ) AS b
        LEFT JOIN LATERAL (
            SELECT o.*
            FROM media_origin o
            WHERE o.workspace_id = p_workspace_id
              AND o.blob_ref = w.blob_ref
            LIMIT 1
        ) AS o ON true
    ), took AS (
        UPDATE media_blobs b
        SET upload_delivery_id = p_delivery_id,
            upload_token = p_claim_token,
            updated_at = clock_timestamp()
        WHERE b.workspace_id = p_workspace_id
          AND b.provider = p_provider
          AND b.bot_id = p_bot_id
          AND b.blob_ref = ANY (ARRAY(SELECT a.blob_ref FROM asked a WHERE a.verdict = 'ours'))
          AND NOT EXISTS (SELECT 1 FROM asked other WHERE other.verdict IN ('busy', 'missing'))
    )
    SELECT a.blob_ref, a.verdict, CASE WHEN a.verdict = 'held' THEN a.file_id END,
           a.origin_url, a.sha256, a.content_type, a.size_bytes, a.name
    FROM asked a
    ORDER BY a.blob_ref;
END $$;
