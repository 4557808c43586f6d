-- enqueue_messages_and_deliveries_batch(workspace_id, endpoint_id, kind, posts, now) -> one answer per post, in order
--
-- Many posts in one transaction. Their contents are locked in one order whatever the order given, and their channels
-- are made due at the end, in one order too, so concurrent batches cannot deadlock; twins inside the batch meet the
-- one before them and are deduplicated by it. Channels show them in the order given: each is a microsecond younger than
-- the one before.
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
    _now timestamptz := coalesce(p_now, clock_timestamp());
    _post record;
BEGIN
    PERFORM set_config('autopost.in_batch', 'on', true);
    FOR _post IN
        SELECT p.post, p.place::int
        FROM jsonb_array_elements(p_posts) WITH ORDINALITY AS p (post, place)
        ORDER BY (p.post ->> 'hash_version')::int, p.post ->> 'content_hash', p.place
    LOOP
        _answers[_post.place] := enqueue_messages_and_deliveries(
            p_workspace_id, p_endpoint_id, p_kind, _post.post, _now + (_post.place - 1) * interval '1 microsecond',
            p_audit_deduped);
    END LOOP;
    PERFORM set_config('autopost.in_batch', 'off', true);

    PERFORM make_channels_due(p_workspace_id, array_agg(n.channel_id), array_agg(n.due))
    FROM (
        SELECT d.channel_id, min(due_of(d.status, d.not_before, d.scheduled_for, d.next_retry_at)) AS due
        FROM unnest(_answers) AS a (answer)
        JOIN deliveries d
          ON d.workspace_id = p_workspace_id
         AND d.message_id = (a.answer ->> 'message_id')::uuid
         AND d.status = 'queued'
        GROUP BY d.channel_id
    ) AS n;
    RETURN to_jsonb(_answers);
END $$;
