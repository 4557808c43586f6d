-- media_is_live(workspace_id, blob_ref) -> whether something refers to this object, or is about to
--
-- Live      used by a message (its renderings and deliveries go with it), by a post whose media is still being
--           fetched, by a publication that is not out yet, by a reply that is still to be sent; or about to be written: a
--           noted put has a day to become an origin
CREATE OR REPLACE FUNCTION media_is_live(p_workspace_id uuid, p_blob_ref text)
RETURNS boolean
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
SET enable_seqscan = off
AS $$
    SELECT EXISTS (
        SELECT 1
        FROM ( -- by the object first: few of a workspace's many messages use it
            SELECT m.workspace_id
            FROM messages m
            WHERE m.payload -> 'media' <> '[]'
              AND m.payload -> 'media' @> jsonb_build_array(jsonb_build_object('blob_ref', p_blob_ref))
            OFFSET 0
        ) AS m
        WHERE m.workspace_id = p_workspace_id
    ) OR EXISTS (
        SELECT 1
        FROM media_fetches f
        WHERE f.workspace_id = p_workspace_id
          AND f.puts <> '{}'
          AND f.puts @> ARRAY[p_blob_ref]
          AND f.started_at > (SELECT clock_timestamp() - interval '1 day')
    ) OR EXISTS (
        SELECT 1
        FROM staged_posts s
        WHERE s.workspace_id = p_workspace_id
          AND s.status IN ('staged', 'fetching')
          AND s.request -> 'media' @> jsonb_build_array(jsonb_build_object('blob_ref', p_blob_ref))
    ) OR EXISTS (
        SELECT 1
        FROM publications p
        WHERE p.workspace_id = p_workspace_id
          AND p.status <> 'published'
          AND jsonb_path_exists(p.creative_draft, '$.** ? (@ == $ref)', jsonb_build_object('ref', p_blob_ref))
    ) OR EXISTS (
        SELECT 1
        FROM bot_outbox b
        WHERE b.workspace_id = p_workspace_id
          AND b.sent_at IS NULL
          AND b.failed_at IS NULL
          AND jsonb_path_exists(b.response, '$.** ? (@ == $ref)', jsonb_build_object('ref', p_blob_ref))
    )
$$;
