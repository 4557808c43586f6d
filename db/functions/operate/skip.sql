-- skip(workspace_id, delivery_ids, operator, reason) -> one verdict per delivery
--
-- An operator has looked at a dead delivery and leaves it: it stays dead and no longer counts for the `dead` alert. The
-- mark is dead_letters.skipped_at; any requeue of the delivery deletes it.
--
-- Verdicts     skipped, already_skipped, not_dead, not_found
-- Appends      manual_skip, with the attempt it has
-- Locks        deliveries (lock_deliveries), then dead_letters by key
-- Raises       AP010 without operator or reason.
CREATE OR REPLACE FUNCTION skip(p_workspace_id uuid, p_delivery_ids uuid[], p_operator text, p_reason text)
RETURNS TABLE (delivery_id uuid, verdict text, status delivery_status)
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    _signature jsonb := operator_signature(p_operator, p_reason);
    _now timestamptz;
BEGIN
    PERFORM lock_deliveries(p_workspace_id, p_delivery_ids);
    _now := clock_timestamp();

    RETURN QUERY
    WITH judged AS MATERIALIZED (
        SELECT asked.delivery_id, d.message_id, d.channel_id, d.attempt, d.trace_id, d.last_error, d.status,
               CASE
                   WHEN d.delivery_id IS NULL THEN 'not_found'
                   WHEN d.status <> 'dead' THEN 'not_dead'
                   WHEN g.skipped_at IS NOT NULL THEN 'already_skipped'
                   ELSE 'skipped'
               END AS verdict
        FROM (SELECT DISTINCT unnest(p_delivery_ids) AS delivery_id) AS asked
        LEFT JOIN deliveries d
          ON d.workspace_id = p_workspace_id
         AND d.delivery_id = asked.delivery_id
        LEFT JOIN dead_letters g
          ON g.workspace_id = d.workspace_id
         AND g.delivery_id = d.delivery_id
    ), marked AS (
        UPDATE dead_letters g
        SET skipped_at = _now
        FROM judged j
        WHERE g.workspace_id = p_workspace_id
          AND g.delivery_id = j.delivery_id
          AND j.verdict = 'skipped'
    ), counted AS (
        UPDATE deliveries d
        SET event_count = d.event_count + 1,
            updated_at = _now
        FROM judged j
        WHERE d.workspace_id = p_workspace_id
          AND d.delivery_id = j.delivery_id
          AND j.verdict = 'skipped'
    ), told AS (
        INSERT INTO events (workspace_id, delivery_id, message_id, channel_id, action, attempt, meta)
        SELECT p_workspace_id, j.delivery_id, j.message_id, j.channel_id, 'manual_skip', j.attempt,
               event_meta(j.trace_id, NULL, _signature || jsonb_build_object('code', j.last_error ->> 'code'))
        FROM judged j
        WHERE j.verdict = 'skipped'
        ORDER BY j.delivery_id
    )
    SELECT j.delivery_id, j.verdict, j.status
    FROM judged j
    ORDER BY j.delivery_id;
END $$;
