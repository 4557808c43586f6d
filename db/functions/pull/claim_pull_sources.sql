-- claim_pull_sources(limit, lease, per_workspace, trace_id) -> sources that are due, each with a lease for the caller
--
-- A tick: of the due sources of all active workspaces at most `limit`, the longest due first, workspaces in turn, and
-- in no workspace more than `per_workspace` at the same time, on all replicas. Each workspace of the tick gets one run.
-- A source whose lease expired is due again; the run that it belonged to says that it was lost.
-- A source without an enabled endpoint is not leased: it leaves ingress_config_error and waits.
--
-- Appends      ingress_config_error
-- Locks        pull_sources (SKIP LOCKED), ingest_runs by key
CREATE OR REPLACE FUNCTION claim_pull_sources(
    p_limit int,
    p_lease interval,
    p_per_workspace int DEFAULT 4,
    p_trace_id text DEFAULT NULL
)
RETURNS TABLE (
    workspace_id uuid,
    source_id text,
    endpoint_id uuid,
    kind text,
    config_json jsonb,
    cursor_json jsonb,
    lease_token uuid,
    run_id uuid
)
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    _now timestamptz := clock_timestamp();
    _workspaces uuid[];
    _sources text[];
    _runs uuid[];
BEGIN
    WITH busy AS MATERIALIZED (
        SELECT s.workspace_id, count(*) AS leased
        FROM pull_sources s
        WHERE s.lease_token IS NOT NULL
          AND s.lease_until >= _now
        GROUP BY s.workspace_id
    ), due AS MATERIALIZED (
        SELECT s.workspace_id, s.source_id, s.next_pull_at,
               coalesce(b.leased, 0)
                   + row_number() OVER (PARTITION BY s.workspace_id ORDER BY s.next_pull_at, s.source_id) AS turn
        FROM pull_sources s
        JOIN workspaces w USING (workspace_id)
        LEFT JOIN busy b USING (workspace_id)
        WHERE s.enabled
          AND s.next_pull_at <= _now
          AND (s.lease_until IS NULL OR s.lease_until < _now)
          AND w.status = 'active'
    ), chosen AS MATERIALIZED (
        SELECT d.workspace_id, d.source_id
        FROM due d
        WHERE d.turn <= p_per_workspace
        ORDER BY d.turn, d.next_pull_at
        LIMIT p_limit
    ), held AS MATERIALIZED (
        SELECT s.workspace_id, s.source_id, s.run_id
        FROM pull_sources s
        JOIN chosen c USING (workspace_id, source_id)
        WHERE s.enabled
          AND s.next_pull_at <= _now
          AND (s.lease_until IS NULL OR s.lease_until < _now)
        FOR UPDATE OF s SKIP LOCKED
    )
    SELECT array_agg(h.workspace_id), array_agg(h.source_id), array_agg(h.run_id)
    INTO _workspaces, _sources, _runs
    FROM held h;
    IF _workspaces IS NULL THEN
        RETURN;
    END IF;

    WITH tick AS (
        INSERT INTO ingest_runs AS r (workspace_id, kind, trace_id, started_at)
        SELECT DISTINCT h.workspace_id, 'pull', p_trace_id, _now
        FROM unnest(_workspaces) AS h (workspace_id)
        RETURNING r.workspace_id, r.run_id
    )
    UPDATE pull_sources s
    SET lease_token = gen_random_uuid(),
        lease_until = _now + p_lease,
        run_id = t.run_id
    FROM unnest(_workspaces, _sources) AS h (workspace_id, source_id)
    JOIN tick t USING (workspace_id)
    WHERE s.workspace_id = h.workspace_id
      AND s.source_id = h.source_id;

    PERFORM count_run(l.workspace_id, l.run_id, '{"lost": 1, "outcome": "lost"}', l.source_id, p_ends => true)
    FROM (
        SELECT h.workspace_id, h.source_id, h.run_id
        FROM unnest(_workspaces, _sources, _runs) AS h (workspace_id, source_id, run_id)
        WHERE h.run_id IS NOT NULL
        ORDER BY h.run_id, h.source_id
    ) AS l;

    PERFORM finish_pull(s.workspace_id, s.source_id, s.lease_token, 'config_error', jsonb_build_object(
                'code', 'endpoint_missing',
                'message', 'no enabled endpoint of kind pull_source names this source'))
    FROM unnest(_workspaces, _sources) AS h (workspace_id, source_id)
    JOIN pull_sources s USING (workspace_id, source_id)
    WHERE NOT EXISTS (
        SELECT 1
        FROM workspace_endpoints e
        WHERE e.workspace_id = s.workspace_id
          AND e.source_id = s.source_id
          AND e.enabled
    );

    RETURN QUERY
    SELECT s.workspace_id, s.source_id, e.endpoint_id, s.kind, s.config_json, coalesce(c.cursor_json, '{}'),
           s.lease_token, s.run_id
    FROM unnest(_workspaces, _sources) AS h (workspace_id, source_id)
    JOIN pull_sources s USING (workspace_id, source_id)
    JOIN workspace_endpoints e
      ON e.workspace_id = s.workspace_id
     AND e.source_id = s.source_id
     AND e.enabled
    LEFT JOIN pull_cursors c
      ON c.workspace_id = s.workspace_id
     AND c.source_id = s.source_id
    WHERE s.lease_token IS NOT NULL;
END $$;
