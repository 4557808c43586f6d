-- match_dead_letters(workspace_id, filter…, after, limit) -> the next page of dead letters that match, oldest first
--
-- status, code             dead or failed_permanent, and last_error's code; null matches any
-- channel_id, message_id   null matches any
-- since, until             when it became one: since <= given_up_at < until
-- after_at, after_id       the last row of the previous page
-- Left out                 what an operator has skipped; what a catch-up policy dropped, unless that code is requested
-- Cost                     the dead letters of that time, until the limit is reached
CREATE OR REPLACE FUNCTION match_dead_letters(
    p_workspace_id uuid,
    p_status delivery_status DEFAULT NULL,
    p_code text DEFAULT NULL,
    p_channel_id uuid DEFAULT NULL,
    p_message_id uuid DEFAULT NULL,
    p_since timestamptz DEFAULT '-infinity',
    p_until timestamptz DEFAULT 'infinity',
    p_after_at timestamptz DEFAULT '-infinity',
    p_after_id uuid DEFAULT '00000000-0000-0000-0000-000000000000',
    p_limit int DEFAULT 1000
)
RETURNS TABLE (delivery_id uuid, given_up_at timestamptz)
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
    SELECT m.delivery_id, m.given_up_at
    FROM unnest(CASE WHEN p_status IS NULL THEN '{dead,failed_permanent}' ELSE ARRAY[p_status] END) AS s (status)
    CROSS JOIN LATERAL ( -- along the index by time, up to the limit, whatever the planner estimates
        SELECT g.delivery_id, g.given_up_at
        FROM dead_letters g
        CROSS JOIN LATERAL (
            SELECT d.message_id, coalesce(d.last_error ->> 'code', '') AS code
            FROM deliveries d
            WHERE d.workspace_id = p_workspace_id
              AND d.delivery_id = g.delivery_id
            OFFSET 0
        ) AS d
        WHERE g.status = s.status
          AND g.workspace_id = p_workspace_id
          AND g.given_up_at >= greatest(coalesce(p_since, '-infinity'), p_after_at)
          AND g.given_up_at < coalesce(p_until, 'infinity')
          AND (g.given_up_at, g.delivery_id) > (p_after_at, p_after_id)
          AND g.skipped_at IS NULL
          AND (p_channel_id IS NULL OR g.channel_id = p_channel_id)
          AND (p_message_id IS NULL OR d.message_id = p_message_id)
          AND d.code = coalesce(p_code, d.code)
          AND (p_code IS NOT NULL OR d.code <> 'catch_up_dropped')
        ORDER BY g.given_up_at, g.delivery_id
        LIMIT p_limit
    ) AS m
    ORDER BY m.given_up_at, m.delivery_id
    LIMIT p_limit
$$;
