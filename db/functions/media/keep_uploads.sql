-- keep_uploads(workspace_id, provider, bot_id, blob_refs, kinds, provider_ids, lifetimes) -> nothing
--
-- The provider holds these blobs now, for this bot, under these ids; a null lifetime is unlimited. No fence: an id that
-- a lost claim got is as good as any.
--
-- Changes      media_blobs; claims that wait for the upload find it held
-- Locks        media_blobs by key
CREATE OR REPLACE FUNCTION keep_uploads(
    p_workspace_id uuid,
    p_provider text,
    p_bot_id text,
    p_blob_refs text[],
    p_kinds text[],
    p_provider_ids text[],
    p_lifetimes interval[]
)
RETURNS void
LANGUAGE sql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    INSERT INTO media_blobs AS b (workspace_id, blob_ref, provider, bot_id, file_id, expires_at, meta)
    SELECT DISTINCT ON (u.blob_ref)
           p_workspace_id, u.blob_ref, p_provider, p_bot_id, u.provider_id, clock_timestamp() + u.lifetime,
           jsonb_build_object('kind', u.kind)
    FROM unnest(p_blob_refs, p_kinds, p_provider_ids, p_lifetimes) AS u (blob_ref, kind, provider_id, lifetime)
    ORDER BY u.blob_ref
    ON CONFLICT (workspace_id, blob_ref, provider, bot_id) DO UPDATE
    SET file_id = excluded.file_id,
        expires_at = excluded.expires_at,
        meta = excluded.meta,
        upload_delivery_id = NULL,
        upload_token = NULL,
        updated_at = clock_timestamp()
$$;
