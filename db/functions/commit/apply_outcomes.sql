-- apply_outcomes(workspace_id, outcomes, run_id, now)
--
-- Moves the deliveries of decided outcomes to their next state. A stale outcome only appends an event.
--
-- Changes   sending -> sent | retry | failed_permanent | dead | cancelled
-- Appends   sent | retry_scheduled | failed_permanent | dead_letter | held | cancelled; stale_commit
-- Locks     deliveries by place: held by the caller
CREATE OR REPLACE FUNCTION apply_outcomes(
    p_workspace_id uuid,
    p_outcomes decided_outcome[],
    p_run_id uuid,
    p_now timestamptz
)
RETURNS void
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
DECLARE
    _drawn text := new_id();
    _first_id bigint := id_start(_drawn);
    _ids text := left(_drawn, 24);
BEGIN
    PERFORM move_deliveries(ARRAY(
        SELECT (o.row_place, o.status, o.retry_at, CASE WHEN o.on_hold THEN 'ambiguous' END, NULL,
                o.provider_message_id, o.error, 1)::delivery_move
        FROM unnest(p_outcomes) AS o
        WHERE o.status IS NOT NULL
    ), p_now);

    INSERT INTO events (id, workspace_id, delivery_id, message_id, channel_id, action, attempt, result, error,
                        payload_ref, meta)
    SELECT id_in(_ids, _first_id + o.place), p_workspace_id, o.delivery_id, o.message_id, o.channel_id,
           CASE
               WHEN o.status = 'sent' THEN 'sent'
               WHEN o.status = 'failed_permanent' THEN 'failed_permanent'
               WHEN o.status = 'dead' THEN 'dead_letter'
               WHEN o.status = 'cancelled' THEN 'cancelled'
               WHEN o.on_hold THEN 'held'
               ELSE 'retry_scheduled'
           END::event_action,
           o.attempt,
           CASE WHEN o.result = 'failed' THEN 'error' ELSE 'ok' END::event_result,
           o.error, o.payload_ref,
           event_meta(o.trace_id, p_run_id, jsonb_build_object(
               'idempotency_key', o.delivery_id,
               'provider_message_id', o.provider_message_id, 'parts', o.parts,
               'next_retry_at', nullif(o.retry_at, 'infinity'),
               'group_cooled', nullif(o.in_storm, false),
               'released', CASE WHEN o.result = 'released' THEN true END) || coalesce(o.meta, '{}'))
    FROM unnest(p_outcomes) AS o
    WHERE o.status IS NOT NULL
    ORDER BY o.delivery_id;

    INSERT INTO events (workspace_id, delivery_id, message_id, channel_id, action, attempt, result, error, meta)
    SELECT p_workspace_id, o.delivery_id, d.message_id, d.channel_id, 'stale_commit', coalesce(d.attempt, 0),
           'error', jsonb_build_object('code', 'stale_commit', 'message', o.result),
           event_meta(d.trace_id, p_run_id, jsonb_build_object(
               'status', d.status, 'provider_message_id', o.provider_message_id))
    FROM unnest(p_outcomes) AS o
    LEFT JOIN LATERAL ( -- each by key, whatever the planner estimates
        SELECT d.message_id, d.channel_id, d.attempt, d.trace_id, d.status
        FROM deliveries d
        WHERE d.workspace_id = p_workspace_id
          AND d.delivery_id = o.delivery_id
        OFFSET 0
    ) AS d ON true
    WHERE o.status IS NULL;
END $$;
