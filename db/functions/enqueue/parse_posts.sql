-- parse_posts(posts, source) -> the posts of a batch as rows, each with its place in the batch, from 1
--
-- Reads the document once, so that later steps work on rows.
--
-- posts        as for enqueue_messages_and_deliveries_batch
-- source       of posts that were not normalised by a service: what each says of its own source goes before it, and tags
--              get their canonical form; null for posts that are stored as they are
CREATE OR REPLACE FUNCTION parse_posts(p_posts jsonb, p_source jsonb DEFAULT NULL)
RETURNS post[]
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT coalesce(array_agg((
               p.place, p.content_hash, p.hash_version, coalesce(p.normalization_version, 1), p.payload,
               CASE WHEN p_source IS NULL THEN coalesce(p.tags, '{}') ELSE canonical_tags(p.tags) END,
               r.channels, r.channel_tags,
               CASE WHEN p_source IS NULL THEN p.source ELSE p_source || coalesce(nullif(p.source, 'null'), '{}') END,
               p.source_ref, p.scheduled_for, p.max_attempts,
               p.run_id, p.trace_id, p.traceparent, p.batch_id, p.renderings, p.request, p.post_id
           )::post), '{}')
    FROM ROWS FROM (jsonb_to_recordset(p_posts) AS (
        content_hash text, hash_version int, normalization_version int, payload jsonb, tags text[], routing jsonb,
        source jsonb, source_ref text, scheduled_for timestamptz, max_attempts int, run_id uuid, trace_id text,
        traceparent text, batch_id uuid, renderings jsonb, request jsonb, post_id uuid
    )) WITH ORDINALITY AS p (
        content_hash, hash_version, normalization_version, payload, tags, routing, source, source_ref, scheduled_for,
        max_attempts, run_id, trace_id, traceparent, batch_id, renderings, request, post_id, place)
    CROSS JOIN LATERAL (
        SELECT CASE WHEN p.routing IS NULL THEN '{}'
                    ELSE ARRAY(SELECT jsonb_array_elements_text(p.routing -> 'channels')) END AS channels,
               CASE WHEN p.routing IS NULL THEN '{}'
                    ELSE ARRAY(SELECT jsonb_array_elements_text(p.routing -> 'channel_tags')) END AS channel_tags
    ) AS r
$$;
