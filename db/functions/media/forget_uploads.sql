-- forget_uploads(workspace_id, provider, bot_id, blob_refs, provider_ids) -> nothing
--
-- The provider does not know these ids any more: the next claim that needs such a blob uploads it again. An id that was
-- replaced meanwhile stays.
--
-- Changes      media_blobs
-- Locks        media_blobs by key
CREATE OR REPLACE FUNCTION forget_uploads(
    p_workspace_id uuid,
    p_provider text,
    p_bot_id text,
    p_blob_refs text[],
    p_provider_ids text[]
)
RETURNS void
LANGUAGE sql
SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
    WITH gone AS MATERIALIZED (
        SELECT b.place
        FROM (
            SELECT *
            FROM unnest(p_blob_refs, p_provider_ids) AS g (blob_ref, provider_id)
            ORDER BY g.blob_ref
        ) AS g
        CROSS JOIN LATERAL ( -- each by key, whatever the planner estimates
            SELECT b.ctid AS place
            FROM media_blobs b
            WHERE b.workspace_id = p_workspace_id
              AND b.blob_ref = g.blob_ref
              AND b.provider = p_provider
              AND b.bot_id = p_bot_id
              AND b.file_id = g.provider_id
            FOR UPDATE
        ) AS b
    )
    UPDATE media_blobs b
    SET file_id = NULL,
        expires_at = NULL,
        updated_at = clock_timestamp()
    FROM gone g
    WHERE b.ctid = g.place
$$;
