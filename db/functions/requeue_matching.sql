-- requeue_matching(workspace_id, operator, reason, filter…, dry_run) -> the verdicts of requeue() for what matches
--
-- filter, limit    see match_given_up; `autopost queue requeue` walks its pages, this takes the first
-- dry_run          the default: count before you move
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

    SELECT array_agg(m.delivery_id)
    INTO _matching
    FROM match_given_up(p_workspace_id, p_status, p_code, p_channel_id, NULL, p_since, p_until, p_limit => p_limit) AS m;

    RETURN QUERY
    SELECT *
    FROM requeue(p_workspace_id, coalesce(_matching, '{}'), p_operator, p_reason, p_attempts, p_force, p_dry_run);
END $$;
