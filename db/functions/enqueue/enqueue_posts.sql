-- enqueue_posts(workspace_id, posts, routes, now, audit_deduped) -> an answer for each of the posts
--
-- The work of enqueue_messages_and_deliveries_batch, for posts that were routed and whose renderings are complete.
-- Posts with the same content go in rounds: the first of each content together, then the second of each. So a later
-- post finds the one before it and is deduplicated. Nearly always there is one round.
--
-- routes       those of route_posts; they may name other posts as well
-- Appends, locks as enqueue_distinct_posts. Channels are made due at the end, for all posts at once and in one order:
--              so concurrent batches cannot deadlock over them.
CREATE OR REPLACE FUNCTION enqueue_posts(
    p_workspace_id uuid,
    p_posts post[],
    p_routes route[],
    p_now timestamptz,
    p_audit_deduped boolean
)
RETURNS post_answer[]
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
DECLARE
    _round post[];
    _answers post_answer[] := '{}';
BEGIN
    IF p_posts = '{}' THEN -- else generic plans would be made for empty tables
        RETURN '{}';
    END IF;
    PERFORM set_config('autopost.in_batch', 'on', true); -- deliveries_after_insert only notes what is late
    IF cardinality(p_posts) = (
        SELECT count(*) FROM (SELECT DISTINCT p.hash_version, p.content_hash FROM unnest(p_posts) AS p) AS contents
    ) THEN
        _answers := enqueue_distinct_posts(p_workspace_id, p_posts, p_routes, p_now, p_audit_deduped);
    ELSE
        FOR _round IN
            SELECT array_agg(r.post ORDER BY (r.post).place)
            FROM (
                SELECT p AS post,
                       row_number() OVER (PARTITION BY p.hash_version, p.content_hash ORDER BY p.place) AS round
                FROM unnest(p_posts) AS p
            ) AS r
            GROUP BY r.round
            ORDER BY r.round
        LOOP
            _answers := _answers || enqueue_distinct_posts(p_workspace_id, _round, p_routes, p_now, p_audit_deduped);
        END LOOP;
    END IF;
    IF current_setting('autopost.in_batch') = 'late' THEN
        PERFORM make_channels_due(p_workspace_id, array_agg(n.channel_id), array_agg(n.due))
        FROM (
            SELECT d.channel_id, min(delivery_due_at(d.status, d.not_before, d.scheduled_for, d.next_retry_at)) AS due
            FROM unnest(_answers) AS a
            CROSS JOIN LATERAL ( -- no workspace_id inside the fence: its key would read the whole workspace
                SELECT d.*
                FROM deliveries d
                WHERE d.message_id = a.message_id
                OFFSET 0
            ) AS d
            WHERE d.workspace_id = p_workspace_id
              AND d.status = 'queued'
              AND a.enqueued > 0
            GROUP BY d.channel_id
        ) AS n;
    END IF;
    PERFORM set_config('autopost.in_batch', 'off', true);
    RETURN _answers;
END $$;
