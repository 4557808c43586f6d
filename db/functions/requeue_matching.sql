-- requeue_matching(workspace_id, operator, reason, filter…, dry_run) -> the verdicts of requeue() for what matches
--
-- status, code     dead or failed_permanent, and last_error's code; null matches any
-- channel_id       null matches any
-- since, until     when it was given up: since <= given_up_at < until
-- limit            the longest given up go first
-- dry_run          the default: count before you move
-- Left out         what an operator has skipped; what a catch-up has dropped, unless that code is asked for
-- Cost             follows what was given up, whatever was sent
-- The rest is requeue()'s: verdicts, events, locks, errors. Raises AP011 also for a status that is never requeued.
CREATE OR REPLACE FUNCTION requeue_matching(
    p_workspace_id uuid,
    p_operator text,
    p_reason text,
    p_status delivery_status DEFAULT NULL,
    p_code text DEFAULT NULL,
    p_channel_id uuid DEFAULT NULL,
    p_since timestamptz DEFAULT '-infinity',
    p_until timestamptz DEFAULT 'infinity',
    p_attempts int DEFAULT 5,
    p_force boolean DEFAULT false,
    p_dry_run boolean DEFAULT true,
    p_limit int DEFAULT 1000
)
RETURNS TABLE (
    delivery_id uuid,
    verdict text,
    twin_id uuid,
    status delivery_status,
    attempt int,
    max_attempts int,
    opens_at timestamptz
)
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    _matching uuid[];
BEGIN
    IF p_status NOT IN ('dead', 'failed_permanent') THEN
        RAISE EXCEPTION 'what is % is not requeued', p_status
            USING ERRCODE = 'AP011', HINT = 'dead, failed_permanent, or null for both';
    END IF;

    SELECT array_agg(f.delivery_id)
    INTO _matching
    FROM (
        SELECT g.delivery_id
        FROM given_up g
        JOIN deliveries d
          ON d.workspace_id = g.workspace_id
         AND d.delivery_id = g.delivery_id
        WHERE g.workspace_id = p_workspace_id
          AND (p_status IS NULL OR g.status = p_status)
          AND g.given_up_at >= coalesce(p_since, '-infinity')
          AND g.given_up_at < coalesce(p_until, 'infinity')
          AND g.skipped_at IS NULL
          AND (p_channel_id IS NULL OR g.channel_id = p_channel_id)
          AND coalesce(d.last_error ->> 'code', '') = coalesce(p_code, d.last_error ->> 'code', '')
          AND (p_code IS NOT NULL OR coalesce(d.last_error ->> 'code', '') <> 'catch_up_dropped')
        ORDER BY g.given_up_at, g.delivery_id
        LIMIT p_limit
    ) AS f;

    RETURN QUERY
    SELECT *
    FROM requeue(p_workspace_id, coalesce(_matching, '{}'), p_operator, p_reason, p_attempts, p_force, p_dry_run);
END $$;
