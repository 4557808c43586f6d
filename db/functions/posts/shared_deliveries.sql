-- shared_deliveries(workspace_id, run_id, message_id, delivery_ids)
-- -> those of these deliveries by which another request was suppressed
--
-- As the events of the content say: such a request has no delivery in that channel.
CREATE OR REPLACE FUNCTION shared_deliveries(p_workspace_id uuid, p_run_id uuid, p_message_id uuid, p_delivery_ids uuid[])
RETURNS uuid[]
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
SET enable_seqscan = off
AS $$
    SELECT ARRAY(
        SELECT DISTINCT e.twin::uuid
        FROM (
            SELECT e.workspace_id, e.action, e.meta ->> 'twin' AS twin, e.meta ->> 'run_id' AS run_id
            FROM events e
            WHERE e.message_id = p_message_id
              AND e.delivery_id IS NULL
            OFFSET 0
        ) AS e
        WHERE e.workspace_id = p_workspace_id
          AND e.action = 'dedup_suppressed'
          AND e.twin = ANY (p_delivery_ids::text[])
          AND e.run_id <> p_run_id::text)
$$;
