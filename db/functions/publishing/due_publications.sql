-- due_publications(limit, now) -> {"due": [{workspace_id, publication_id, version}], "missed": n, "next_in": seconds}
--
-- Starts what is due: its command goes into the outbox in the same transaction. Any number of processes may call this;
-- each publication starts once.
--
-- due        now `publishing`, with a command publish:<id>:<version>
-- missed     later than their late_after, so paused: an old time is no time to advertise
-- next_in    until the next one by the database's clock; 0 when more are due, null for none
-- Workspaces that are not active are left alone.
-- Appends    publication_due, publication_paused
-- Locks      publications SKIP LOCKED
CREATE OR REPLACE FUNCTION due_publications(p_limit int, p_now timestamptz DEFAULT NULL)
RETURNS jsonb
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
DECLARE
    _now timestamptz := coalesce(p_now, clock_timestamp());
    _due jsonb;
    _taken int;
    _next timestamptz;
BEGIN
    WITH due AS MATERIALIZED (
        SELECT p.workspace_id, p.publication_id, p.scheduled_at + p.late_after < _now AS is_missed
        FROM publications p
        JOIN workspaces w
          ON w.workspace_id = p.workspace_id
         AND w.status = 'active'
        WHERE p.status = 'scheduled'
          AND p.scheduled_at <= _now
        ORDER BY p.scheduled_at
        LIMIT p_limit
        FOR NO KEY UPDATE OF p SKIP LOCKED
    ), started AS (
        UPDATE publications p
        SET status = CASE WHEN d.is_missed THEN 'paused' ELSE 'publishing' END,
            pause_code = CASE WHEN d.is_missed THEN 'missed' END,
            changed_by = NULL,
            updated_at = _now
        FROM due d
        WHERE p.workspace_id = d.workspace_id
          AND p.publication_id = d.publication_id
        RETURNING p.workspace_id, p.publication_id, p.version, p.status, p.scheduled_at, p.traceparent
    ), asked AS (
        INSERT INTO command_outbox (workspace_id, msg_id, subject, payload, traceparent)
        SELECT s.workspace_id, format('publish:%s:%s', s.publication_id, s.version), 'delivery.commands',
               jsonb_build_object('type', 'publish_post.v1', 'workspace_id', s.workspace_id,
                                  'publication_id', s.publication_id, 'version', s.version),
               s.traceparent
        FROM started s
        WHERE s.status = 'publishing'
        ON CONFLICT DO NOTHING
    )
    SELECT jsonb_build_object(
               'due', coalesce(jsonb_agg(jsonb_build_object(
                          'workspace_id', s.workspace_id, 'publication_id', s.publication_id, 'version', s.version)
                          ORDER BY s.scheduled_at) FILTER (WHERE s.status = 'publishing'), '[]'),
               'missed', count(*) FILTER (WHERE s.status = 'paused')),
           count(*)
    INTO _due, _taken
    FROM started s;

    SELECT p.scheduled_at
    INTO _next
    FROM publications p
    WHERE p.status = 'scheduled'
      AND p.scheduled_at > CASE WHEN _taken = p_limit THEN '-infinity' ELSE _now END -- what another process holds is not ours
      AND EXISTS (
          SELECT 1
          FROM workspaces w
          WHERE w.workspace_id = p.workspace_id
            AND w.status = 'active'
          OFFSET 0
      )
    ORDER BY p.scheduled_at
    LIMIT 1;
    RETURN _due || jsonb_build_object(
        'next_in', CASE WHEN _next IS NOT NULL
                        THEN greatest(0, date_part('epoch', _next - coalesce(p_now, clock_timestamp()))) END);
END $$;
