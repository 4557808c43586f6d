-- requeue(workspace_id, delivery_ids, operator, reason, attempts, force, dry_run) -> one verdict per delivery
--
-- Brings dead letters back into the queue, due at once. `attempt` stays what it is and max_attempts becomes
-- attempt + attempts: the budget is renewed, the count goes on. Series progress is kept, so a half-sent post goes on
-- with its missing part.
--
-- Verdicts     requeued, or why not: see check_requeue. A dry run returns the same and changes nothing.
--              Where `opens_at` is in the future the delivery waits until then for a pause or a window.
-- Changes      dead | failed_permanent -> retry
-- Appends      manual_requeue, with the attempt it has, operator, reason and from_status
-- Locks        messages (the mutex of enqueue: a post with the same content at this moment comes before or after),
--              deliveries (lock_deliveries), and their triggers' tables by key
-- Raises       AP010 without operator or reason, AP011 when attempts is not positive.
CREATE OR REPLACE FUNCTION requeue(
    p_workspace_id uuid,
    p_delivery_ids uuid[],
    p_operator text,
    p_reason text,
    p_attempts int DEFAULT 5,
    p_force boolean DEFAULT false,
    p_dry_run boolean DEFAULT false
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
    _signature jsonb := operator_signature(p_operator, p_reason);
    _now timestamptz;
BEGIN
    IF coalesce(p_attempts, 0) < 1 THEN
        RAISE EXCEPTION 'attempts must be at least 1, not %', p_attempts USING ERRCODE = 'AP011';
    END IF;

    IF NOT p_dry_run THEN
        PERFORM 1
        FROM messages m
        WHERE m.workspace_id = p_workspace_id
          AND m.message_id IN (
              SELECT d.message_id
              FROM deliveries d
              WHERE d.workspace_id = p_workspace_id
                AND d.delivery_id = ANY (p_delivery_ids)
          )
        ORDER BY m.hash_version, m.content_hash
        FOR NO KEY UPDATE;

        PERFORM lock_deliveries(p_workspace_id, p_delivery_ids);
    END IF;
    _now := clock_timestamp();

    -- A new statement: it must see what the previous holders of the locks wrote.
    RETURN QUERY
    WITH judged AS MATERIALIZED (
        SELECT j.*, d.message_id, d.channel_id, d.attempt, d.max_attempts, d.trace_id
        FROM check_requeue(p_workspace_id, p_delivery_ids, p_force, _now) AS j
        LEFT JOIN deliveries d
          ON d.workspace_id = p_workspace_id
         AND d.delivery_id = j.delivery_id
    ), moved AS (
        UPDATE deliveries d
        SET status = 'retry',
            next_retry_at = _now,
            max_attempts = d.attempt + p_attempts,
            hold_reason = NULL,
            claimed_at = NULL,
            claim_token = NULL,
            sending_started_at = NULL,
            sending_lease_until = NULL,
            event_count = d.event_count + 1,
            updated_at = _now
        FROM judged j
        WHERE d.workspace_id = p_workspace_id
          AND d.delivery_id = j.delivery_id
          AND j.verdict = 'requeued'
          AND NOT p_dry_run
        RETURNING d.delivery_id, d.status, d.max_attempts
    ), told AS (
        INSERT INTO events (workspace_id, delivery_id, message_id, channel_id, action, attempt, meta)
        SELECT p_workspace_id, j.delivery_id, j.message_id, j.channel_id, 'manual_requeue', j.attempt,
               event_meta(j.trace_id, NULL, _signature || jsonb_build_object(
                   'from_status', j.status, 'max_attempts', m.max_attempts,
                   'forced', nullif(p_force, false)))
        FROM judged j
        JOIN moved m USING (delivery_id)
        ORDER BY j.delivery_id
    )
    SELECT j.delivery_id, j.verdict, j.twin_id, coalesce(m.status, j.status), j.attempt,
           coalesce(m.max_attempts, j.max_attempts), j.opens_at
    FROM judged j
    LEFT JOIN moved m USING (delivery_id)
    ORDER BY j.delivery_id;
END $$;
