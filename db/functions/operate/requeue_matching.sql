-- requeue_matching(workspace_id, operator, reason, filter…, dry_run, limit)
-- -> the verdicts of requeue() for what matches
--
-- filter       see match_dead_letters
-- dry_run      the default: counts all that matches, whatever the limit
-- limit        so many are requeued, the oldest first: a refused one does not use up the limit, so repeated calls until
--              nothing was requeued bring back all that can
-- Cost         grows with the dead letters that match, up to the last one requeued; not with what was sent
-- The rest is requeue()'s: verdicts, events, locks, errors. Raises AP011 also for a status that is never requeued, and
-- for a limit below one.
CREATE OR REPLACE FUNCTION requeue_matching(
    p_workspace_id uuid,
    p_operator text,
    p_reason text,
    p_status delivery_status DEFAULT NULL,
    p_code text DEFAULT NULL,
    p_channel_id uuid DEFAULT NULL,
    p_message_id uuid DEFAULT NULL,
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
    _page_size int := CASE WHEN NOT p_dry_run THEN p_limit END;
    _page uuid[];
    _chosen uuid[] := '{}';
    _at timestamptz := '-infinity';
    _id uuid := '00000000-0000-0000-0000-000000000000';
BEGIN
    IF p_status NOT IN ('dead', 'failed_permanent') THEN
        RAISE EXCEPTION 'deliveries that are % cannot be requeued', p_status
            USING ERRCODE = 'AP011', HINT = 'dead, failed_permanent, or null for both';
    ELSIF coalesce(p_limit, 0) < 1 THEN
        RAISE EXCEPTION 'limit must be at least 1, not %', p_limit USING ERRCODE = 'AP011';
    END IF;

    LOOP
        SELECT array_agg(m.delivery_id), max(m.given_up_at)
        INTO _page, _at
        FROM match_dead_letters(p_workspace_id, p_status, p_code, p_channel_id, p_message_id, p_since, p_until,
                            _at, _id, _page_size) AS m;
        EXIT WHEN _page IS NULL OR p_dry_run;
        _id := _page[cardinality(_page)];

        -- Checked without a lock: all that comes back is locked at once, below, in the usual lock order.
        FOR delivery_id, verdict, twin_id, status, attempt, max_attempts, opens_at IN
            SELECT r.*
            FROM requeue(p_workspace_id, _page, p_operator, p_reason, p_attempts, p_force, p_dry_run => true) AS r
            JOIN unnest(_page) WITH ORDINALITY AS listed (delivery_id, place) USING (delivery_id)
            ORDER BY listed.place
        LOOP
            IF verdict <> 'requeued' THEN
                RETURN NEXT;
            ELSIF cardinality(_chosen) < p_limit THEN
                _chosen := _chosen || delivery_id;
            END IF;
        END LOOP;
        EXIT WHEN cardinality(_chosen) = p_limit;
    END LOOP;

    RETURN QUERY
    SELECT *
    FROM requeue(p_workspace_id, CASE WHEN p_dry_run THEN coalesce(_page, '{}') ELSE _chosen END,
                 p_operator, p_reason, p_attempts, p_force, p_dry_run);
END $$;
