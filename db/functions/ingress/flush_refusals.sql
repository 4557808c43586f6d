-- flush_refusals(workspace_id, endpoint_id) -> for how many endpoints refusals were recorded
--
-- Records the refusals that have no event yet: a finished run with its counters and one event per action, with
-- meta.count. Without arguments for every endpoint, called by a timer: the last refusals of a burst are recorded
-- although no other follows. Endpoints recorded within the last second, or locked by another call, are skipped.
--
-- Appends   ingress_rate_limited | ingress_payload_rejected | ingress_dedup_dropped | ingress_config_error
-- Locks     ingress_gates
CREATE OR REPLACE FUNCTION flush_refusals(p_workspace_id uuid DEFAULT NULL, p_endpoint_id uuid DEFAULT NULL)
RETURNS bigint
LANGUAGE sql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    WITH untold AS MATERIALIZED (
        SELECT g.workspace_id, g.endpoint_id, g.refused, new_id() AS run_id
        FROM ingress_gates g
        WHERE g.refused <> '{}'
          AND g.reported_at < (SELECT clock_timestamp() - interval '1 second')
          AND (p_endpoint_id IS NULL OR (g.workspace_id = p_workspace_id AND g.endpoint_id = p_endpoint_id))
        FOR UPDATE SKIP LOCKED
    ), taken AS (
        UPDATE ingress_gates g
        SET refused = '{}',
            reported_at = clock_timestamp()
        FROM untold u
        WHERE g.workspace_id = u.workspace_id
          AND g.endpoint_id = u.endpoint_id
    ), refusals AS MATERIALIZED (
        SELECT u.workspace_id, u.endpoint_id, u.run_id, r.action, r.told
        FROM untold u
        CROSS JOIN jsonb_each(u.refused) AS r (action, told)
    ), runs AS (
        INSERT INTO ingest_runs (workspace_id, run_id, kind, endpoint_id, trace_id, finished_at, stats_json)
        SELECT r.workspace_id, r.run_id, min(r.told ->> 'kind'), r.endpoint_id, max(r.told ->> 'trace_id'),
               clock_timestamp(), jsonb_object_agg(r.told ->> 'counter', r.told -> 'count')
        FROM refusals r
        GROUP BY r.workspace_id, r.run_id, r.endpoint_id
    ), told AS (
        INSERT INTO events (workspace_id, action, result, error, payload_ref, meta)
        SELECT r.workspace_id, r.action::event_action, 'error', r.told -> 'detail', r.told ->> 'payload_ref',
               jsonb_build_object('endpoint_id', r.endpoint_id, 'run_id', r.run_id, 'trace_id', r.told -> 'trace_id',
                                  'count', r.told -> 'count')
        FROM refusals r
    )
    SELECT count(*)
    FROM untold
$$;
