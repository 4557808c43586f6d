-- enqueue_posts(workspace_id, posts, chosen, routes, now, audit_deduped) -> {place: answer} of the chosen posts
--
-- The work of enqueue_messages_and_deliveries_batch, for posts that were routed and whose renderings are complete.
-- Posts of one content go in rounds, the first of each content together, then the second of each: whoever comes later
-- meets the one before and is deduplicated by it. Nearly always there is one round.
--
-- chosen       places in posts, from 1; the routes are those of route_posts, and may name other posts as well
-- Appends, locks as enqueue_distinct_posts; channels are made due at the end, in one order, so that concurrent batches
-- cannot deadlock over them
CREATE OR REPLACE FUNCTION enqueue_posts(
    p_workspace_id uuid,
    p_posts jsonb,
    p_chosen int[],
    p_routes route[],
    p_now timestamptz,
    p_audit_deduped boolean
)
RETURNS jsonb
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
DECLARE
    _rounds jsonb[];
    _round jsonb;
    _answers jsonb := '{}';
BEGIN
    IF cardinality(p_chosen) = 1 THEN
        RETURN enqueue_distinct_posts(p_workspace_id, p_posts, p_chosen, p_routes, p_now, p_audit_deduped);
    END IF;

    SELECT array_agg(r.places ORDER BY r.round)
    INTO _rounds
    FROM (
        SELECT g.round, jsonb_agg(g.place) AS places
        FROM (
            SELECT c.place,
                   row_number() OVER (PARTITION BY p.post -> 'hash_version', p.post -> 'content_hash' ORDER BY c.place)
                       AS round
            FROM unnest(p_chosen) AS c (place)
            CROSS JOIN LATERAL (SELECT p_posts -> (c.place - 1) AS post) AS p
        ) AS g
        GROUP BY g.round
    ) AS r;

    PERFORM set_config('autopost.in_batch', 'on', true) WHERE cardinality(_rounds) > 1;
    FOREACH _round IN ARRAY coalesce(_rounds, '{}') LOOP
        _answers := _answers || enqueue_distinct_posts(
            p_workspace_id, p_posts, ARRAY(SELECT jsonb_array_elements(_round)::int),
            p_routes, p_now, p_audit_deduped);
    END LOOP;
    IF cardinality(_rounds) > 1 THEN
        PERFORM set_config('autopost.in_batch', 'off', true);
        PERFORM make_channels_due(p_workspace_id, array_agg(n.channel_id), array_agg(n.due))
        FROM (
            SELECT d.channel_id, min(due_of(d.status, d.not_before, d.scheduled_for, d.next_retry_at)) AS due
            FROM jsonb_each(_answers) AS a (place, answer)
            JOIN deliveries d
              ON d.workspace_id = p_workspace_id
             AND d.message_id = (a.answer ->> 'message_id')::uuid
             AND d.status = 'queued'
            GROUP BY d.channel_id
        ) AS n;
    END IF;
    RETURN _answers;
END $$;
