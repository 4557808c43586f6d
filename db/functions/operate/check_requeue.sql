-- check_requeue(workspace_id, delivery_ids, force, now)
-- -> the verdict that requeue() would give for each; changes nothing
--
-- The first reason that applies:
-- not_found         no such delivery in this workspace
-- not_given_up      neither dead nor failed_permanent; `status` says what it is
-- nothing_to_send   it failed before a plan was made: post the content again
-- publication_changed   its publication was edited or cancelled: it is not what is to be published any more
-- channel_disabled  its channel failed, and was not enabled since
-- twin_in_flight    the same content waits for, or is being sent to, the same channel: `twin_id`; force overrides
-- twin_sent         the same content was sent there within the channel's dedup window: `twin_id`; force overrides
-- requeued          may come back. Of two with one content and channel in one call only the newer may; the other gets
--                   twin_in_flight.
-- `opens_at` is when the channel's pause and windows let it through.
CREATE OR REPLACE FUNCTION check_requeue(
    p_workspace_id uuid,
    p_delivery_ids uuid[],
    p_force boolean,
    p_now timestamptz
)
RETURNS TABLE (delivery_id uuid, verdict text, twin_id uuid, status delivery_status, opens_at timestamptz)
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    WITH found AS MATERIALIZED (
        SELECT asked.delivery_id, d.message_id, d.channel_id, d.created_at, d.status,
               channel_opens_at(c, p_now) AS opens_at,
               twin.delivery_id AS twin_id,
               CASE
                   WHEN d.delivery_id IS NULL THEN 'not_found'
                   WHEN d.status NOT IN ('dead', 'failed_permanent') THEN 'not_given_up'
                   WHEN d.rendering_id IS NULL THEN 'nothing_to_send'
                   WHEN d.policy = 'publication' AND NOT EXISTS (
                       SELECT 1
                       FROM publications p
                       WHERE p.workspace_id = d.workspace_id
                         AND p.delivery_id = d.delivery_id
                         AND p.status IN ('failed', 'paused', 'publishing')
                   ) THEN 'publication_changed'
                   WHEN d.last_error ->> 'scope' = 'channel' AND NOT c.enabled THEN 'channel_disabled'
                   WHEN twin.status = 'sent' THEN 'twin_sent'
                   WHEN twin.status IS NOT NULL THEN 'twin_in_flight'
                   ELSE 'requeued'
               END AS verdict
        FROM (SELECT DISTINCT unnest(p_delivery_ids) AS delivery_id) AS asked
        LEFT JOIN deliveries d
          ON d.workspace_id = p_workspace_id
         AND d.delivery_id = asked.delivery_id
        LEFT JOIN channels c
          ON c.workspace_id = d.workspace_id
         AND c.channel_id = d.channel_id
        LEFT JOIN LATERAL (
            SELECT t.delivery_id, t.status
            FROM deliveries t
            WHERE NOT p_force
              AND t.workspace_id = d.workspace_id
              AND t.message_id = d.message_id
              AND t.channel_id = d.channel_id
              AND t.delivery_id <> d.delivery_id
              AND is_twin(t.status, coalesce(t.sent_at, t.updated_at), c.dedup_ttl_hours, p_now)
            ORDER BY t.status = 'sent', t.delivery_id
            LIMIT 1
        ) AS twin ON true
    ), ranked AS (
        SELECT f.*,
               first_value(f.delivery_id) OVER alike AS newest,
               row_number() OVER alike AS place
        FROM found f
        WINDOW alike AS (PARTITION BY f.message_id, f.channel_id, f.verdict
                         ORDER BY f.created_at DESC, f.delivery_id DESC)
    )
    SELECT r.delivery_id,
           CASE WHEN second THEN 'twin_in_flight' ELSE r.verdict END,
           CASE WHEN second THEN r.newest ELSE r.twin_id END,
           r.status,
           r.opens_at
    FROM ranked r
    CROSS JOIN LATERAL (SELECT r.verdict = 'requeued' AND r.place > 1 AND NOT p_force) AS s (second)
$$;
