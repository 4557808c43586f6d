-- cancel_post(workspace_id, run_id, message_id, post_id, signature, partial, force)
-- -> {"verdict", "deliveries": [{"delivery_id", "channel_id", "title", "platform", "verdict", "status"}]}
--
-- Withdraws what one request posted, or with a null run_id what all requests with this content did, before it is sent.
-- The receipt stays, marked: the same source_ref with another payload is accepted, the same payload is a duplicate.
--
-- force        cancel also what another request was suppressed by
-- verdict      of a delivery: as in cancel_deliveries, and `shared` (unchanged): another request has no delivery of its
--              own, because it found this one
--              as a whole: the first of cancelled, too_late, partly_sent, shared, already that any has
-- Changes      as cancel_deliveries; staged | fetching -> failed (code cancelled): the lease of its worker is void
-- Appends      cancelled per delivery, or for the staged post
-- Locks        staged_posts, then as cancel_deliveries, then ingress_receipts by key
CREATE OR REPLACE FUNCTION cancel_post(
    p_workspace_id uuid,
    p_run_id uuid,
    p_message_id uuid,
    p_post_id uuid,
    p_signature jsonb,
    p_partial boolean DEFAULT false,
    p_force boolean DEFAULT false
)
RETURNS jsonb
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
DECLARE
    _staged staged_posts;
    _message_id uuid := p_message_id;
    _ids uuid[];
    _shared uuid[];
    _told jsonb;
    _runs uuid[];
BEGIN
    IF p_post_id IS NOT NULL THEN
        SELECT s.*
        INTO _staged
        FROM staged_posts s
        WHERE s.workspace_id = p_workspace_id
          AND s.post_id = p_post_id
        FOR UPDATE;
        _message_id := _staged.message_id;
        IF _staged.status IN ('staged', 'fetching') THEN
            UPDATE staged_posts s
            SET status = 'failed',
                lease_token = NULL,
                lease_until = NULL,
                last_error = '{"code": "cancelled"}',
                finished_at = clock_timestamp()
            WHERE s.workspace_id = p_workspace_id
              AND s.post_id = p_post_id;
            INSERT INTO events (workspace_id, action, attempt, meta)
            VALUES (p_workspace_id, 'cancelled', _staged.attempt, staged_origin(_staged) || p_signature);
            PERFORM count_run(p_workspace_id, _staged.run_id, '{"cancelled": 1}', p_ends => true);
            UPDATE ingress_receipts r
            SET cancelled_at = clock_timestamp()
            WHERE r.workspace_id = p_workspace_id
              AND r.receipt_id = _staged.receipt_id;
            RETURN '{"verdict": "cancelled", "deliveries": []}';
        END IF;
    END IF;

    _ids := ARRAY(SELECT r.delivery_id FROM request_deliveries(p_workspace_id, p_run_id, _message_id) AS r);
    _shared := CASE WHEN p_force OR p_run_id IS NULL THEN '{}'
                    ELSE shared_deliveries(p_workspace_id, p_run_id, _message_id, _ids) END;
    SELECT jsonb_agg(jsonb_build_object(
               'delivery_id', v.delivery_id, 'channel_id', d.channel_id, 'title', c.title, 'platform', c.platform,
               'verdict', v.verdict, 'status', v.status) ORDER BY c.platform, c.title, d.channel_id, v.delivery_id),
           array_agg(DISTINCT coalesce(p_run_id, delivery_run(p_workspace_id, v.delivery_id, d.created_at)))
               FILTER (WHERE v.verdict IN ('cancelled', 'perhaps_sent'))
    INTO _told, _runs
    FROM (
        SELECT c.delivery_id, c.verdict, c.status
        FROM cancel_deliveries(p_workspace_id, ARRAY(SELECT unnest(_ids) EXCEPT SELECT unnest(_shared)),
                               p_signature, p_partial) AS c
        UNION ALL
        SELECT s.delivery_id, 'shared', NULL
        FROM unnest(_shared) AS s (delivery_id)
    ) AS v
    CROSS JOIN LATERAL (
        SELECT d.channel_id, d.created_at
        FROM deliveries d
        WHERE d.workspace_id = p_workspace_id
          AND d.delivery_id = v.delivery_id
        OFFSET 0
    ) AS d
    LEFT JOIN channels c
      ON c.workspace_id = p_workspace_id
     AND c.channel_id = d.channel_id;
    UPDATE ingress_receipts r
    SET cancelled_at = clock_timestamp()
    FROM (SELECT g.run_id FROM unnest(_runs) AS g (run_id) ORDER BY g.run_id) AS g
    CROSS JOIN LATERAL ( -- by key, whatever the planner estimates
        SELECT o.ctid AS place
        FROM ingress_receipts o
        WHERE o.workspace_id = p_workspace_id
          AND o.receipt_id = g.run_id
        FOR UPDATE
    ) AS locked
    WHERE r.ctid = locked.place;
    RETURN jsonb_build_object('verdict', cancel_verdict(_told), 'deliveries', coalesce(_told, '[]'));
END $$;
