-- match_given_up(workspace_id, filter…, after, limit) -> the next of what was given up and matches, oldest first
--
-- status, code             dead or failed_permanent, and last_error's code; null matches any
-- channel_id, message_id   null matches any
-- since, until             when it was given up: since <= given_up_at < until
-- after_at, after_id       the last row of the page before this one
-- Left out                 what an operator has skipped; what a catch-up has dropped, unless that code is asked for
-- Cost                     follows what was given up, whatever was sent
CREATE OR REPLACE FUNCTION match_given_up(
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
AS $$
    SELECT g.delivery_id, g.given_up_at
    FROM given_up g
    JOIN deliveries d
      ON d.workspace_id = g.workspace_id
     AND d.delivery_id = g.delivery_id
    WHERE g.workspace_id = p_workspace_id
      AND (p_status IS NULL OR g.status = p_status)
      AND g.given_up_at >= greatest(coalesce(p_since, '-infinity'), p_after_at)
      AND g.given_up_at < coalesce(p_until, 'infinity')
      AND (g.given_up_at, g.delivery_id) > (p_after_at, p_after_id)
      AND g.skipped_at IS NULL
      AND (p_channel_id IS NULL OR g.channel_id = p_channel_id)
      AND (p_message_id IS NULL OR d.message_id = p_message_id)
      AND coalesce(d.last_error ->> 'code', '') = coalesce(p_code, d.last_error ->> 'code', '')
      AND (p_code IS NOT NULL OR coalesce(d.last_error ->> 'code', '') <> 'catch_up_dropped')
    ORDER BY g.given_up_at, g.delivery_id
    LIMIT p_limit
$$;
