-- enqueue_messages_and_deliveries_batch(workspace_id, endpoint_id, kind, posts, now) -> one answer per post, in order
--
-- Many posts in one transaction. Their contents are locked in one order whatever the order given, so concurrent
-- batches cannot deadlock; twins inside the batch meet the one before them and are deduplicated by it.
CREATE OR REPLACE FUNCTION enqueue_messages_and_deliveries_batch(
    p_workspace_id uuid,
    p_endpoint_id uuid,
    p_kind text,
    p_posts jsonb,
    p_now timestamptz DEFAULT NULL,
    p_audit_deduped boolean DEFAULT false
)
RETURNS jsonb
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
DECLARE
    _answers jsonb[] := array_fill(NULL::jsonb, ARRAY[jsonb_array_length(p_posts)]);
    _post record;
BEGIN
    FOR _post IN
        SELECT p.post, p.place::int
        FROM jsonb_array_elements(p_posts) WITH ORDINALITY AS p (post, place)
        ORDER BY (p.post ->> 'hash_version')::int, p.post ->> 'content_hash', p.place
    LOOP
        _answers[_post.place] := enqueue_messages_and_deliveries(
            p_workspace_id, p_endpoint_id, p_kind, _post.post, p_now, p_audit_deduped);
    END LOOP;
    RETURN to_jsonb(_answers);
END $$;
