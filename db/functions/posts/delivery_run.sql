-- delivery_run(workspace_id, delivery_id, created_at) -> the run of the request that made a delivery
--
-- As its first event says, which has the id of the delivery; null once that event is no longer kept.
CREATE OR REPLACE FUNCTION delivery_run(p_workspace_id uuid, p_delivery_id uuid, p_created_at timestamptz)
RETURNS uuid
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT (e.meta ->> 'run_id')::uuid
    FROM ( -- no workspace_id inside the fence: its key would read the whole workspace
        SELECT e.workspace_id, e.id, e.meta
        FROM events e
        WHERE e.delivery_id = p_delivery_id
          AND e.ts BETWEEN p_created_at - interval '1 day' AND p_created_at + interval '1 day'
        OFFSET 0
    ) AS e
    WHERE e.workspace_id = p_workspace_id
      AND e.id = p_delivery_id
    LIMIT 1
$$;
