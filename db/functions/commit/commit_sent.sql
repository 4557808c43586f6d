-- commit_sent(workspace_id, delivery_ids, claim_tokens, provider_message_ids, run_id)
-- -> the numbers of the outcomes that are left
--
-- The fast path of commit_deliveries, for sent outcomes that carry nothing but the id that the platform gave. While no
-- channel has a streak to reset and no circuit depends on an answer, which is nearly always, no channel and no rate
-- group is read or written.
--
-- Left         not committed: to be passed to commit_deliveries, in a transaction of its own, because that locks
--              channels before deliveries. It finds out which of them are stale
-- Changes      sending -> sent
-- Appends      sent
-- Locks        deliveries by key
CREATE OR REPLACE FUNCTION commit_sent(
    p_workspace_id uuid,
    p_delivery_ids uuid[],
    p_claim_tokens uuid[],
    p_provider_message_ids text[],
    p_run_id uuid DEFAULT NULL
)
RETURNS SETOF int
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_nestloop = off SET enable_bitmapscan = off
SET lock_timeout = '1s'
AS $$
#variable_conflict use_column
DECLARE
    _now timestamptz := clock_timestamp();
    _has_streak boolean := EXISTS (SELECT 1 FROM circuits_in_doubt(ARRAY[p_workspace_id])) OR EXISTS (
        SELECT 1 FROM channels c WHERE c.workspace_id = p_workspace_id AND c.error_streak > 0);
    _drawn text := new_id();
    _first_id bigint := id_start(_drawn);
    _ids text := left(_drawn, 24);
    _committed int[];
BEGIN
    -- All keys in one pass along the index, which is in lock order: a look-up for each by nested loops was a sixth of
    -- the cost. A bitmap would lose the order.
    WITH moved AS (
        UPDATE deliveries d
        SET status = 'sent',
            sent_at = _now,
            provider_message_id = coalesce(f.provider_message_id, d.provider_message_id),
            next_retry_at = NULL,
            hold_reason = NULL,
            claimed_at = NULL,
            claim_token = NULL,
            sending_started_at = NULL,
            sending_lease_until = NULL,
            event_count = d.event_count + 1,
            updated_at = _now
        FROM (
            SELECT *
            FROM unnest(p_delivery_ids, p_claim_tokens, p_provider_message_ids)
                WITH ORDINALITY AS g (delivery_id, claim_token, provider_message_id, nth)
            ORDER BY g.delivery_id
        ) AS f
        WHERE d.workspace_id = p_workspace_id
          AND d.delivery_id = ANY (p_delivery_ids)
          AND d.delivery_id = f.delivery_id
          AND d.claim_token = f.claim_token
          AND d.status = 'sending'
          AND NOT _has_streak
        RETURNING f.nth, d.delivery_id, d.message_id, d.channel_id, d.attempt, d.trace_id, f.provider_message_id
    ), told AS (
        INSERT INTO events (id, workspace_id, delivery_id, message_id, channel_id, action, attempt, meta)
        SELECT id_in(_ids, _first_id + m.nth), p_workspace_id, m.delivery_id, m.message_id, m.channel_id,
               'sent', m.attempt, sent_meta(m.trace_id, p_run_id, m.delivery_id, m.provider_message_id)
        FROM moved m
    )
    SELECT coalesce(array_agg(m.nth), '{}') INTO _committed FROM moved m;

    IF cardinality(_committed) < cardinality(p_delivery_ids) THEN
        RETURN QUERY
        SELECT n
        FROM generate_series(1, cardinality(p_delivery_ids)) AS n
        EXCEPT
        SELECT unnest(_committed)
        ORDER BY 1;
    END IF;
END $$;
