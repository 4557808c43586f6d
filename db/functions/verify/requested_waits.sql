-- requested_waits(workspace_id, after, until) -> the waits of more than five seconds that providers asked for
--
-- scope     channel or platform: the gate that the wait closes
-- until     five seconds early: commits and events are written at slightly different times
CREATE OR REPLACE FUNCTION requested_waits(p_workspace_id uuid, p_after timestamptz, p_until timestamptz)
RETURNS TABLE (ts timestamptz, channel_id uuid, scope text, until timestamptz)
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
SET enable_seqscan = off
AS $$
    SELECT e.ts, e.channel_id, e.error ->> 'scope' AS scope,
           e.ts - interval '5 seconds'
               + least(make_interval(secs => (e.error ->> 'retry_after_ms')::double precision / 1000),
                       interval '1 day') AS until
    FROM events e
    WHERE e.workspace_id = p_workspace_id
      AND e.result = 'error'
      AND e.ts > p_after
      AND e.ts <= p_until
      AND e.delivery_id IS NOT NULL
      AND e.action IN ('retry_scheduled', 'held', 'failed_permanent', 'dead_letter')
      AND e.error ->> 'scope' IN ('channel', 'platform')
      AND (e.error ->> 'category' = 'TRANSIENT' OR e.error ->> 'scope' = 'platform')
      AND (e.error ->> 'retry_after_ms')::double precision > 5000
$$;
