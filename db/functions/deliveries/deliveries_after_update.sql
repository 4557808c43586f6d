-- deliveries_after_update() trigger on deliveries, after UPDATE, once per statement
--
-- Carries changes of deliveries into delivery_queue, dead_letters, channel_counters and channel_due. Functions and
-- hand-written statements take the same path, so the tables cannot disagree. reject_delivery_update refuses illegal
-- changes.
--
-- Changes   delivery_queue (taken, freed, woken, removed), dead_letters, channel_counters, channel_due; and the attempts of
--           dead letters that a hand-written statement has brought back (renew_attempts)
-- Locks     channel_due FOR KEY SHARE (only for rows that wait again), delivery_queue, channel_counters,
--           channel_due: each by key
CREATE OR REPLACE FUNCTION deliveries_after_update()
RETURNS trigger
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
DECLARE
    _seen record;
    _taken record;
    _ended record;
    _now timestamptz := clock_timestamp();
BEGIN
    -- By channel: what is in flight now minus what was before, and when the next waiting delivery is due. Counted by
    -- status first, so there is no other work per row.
    WITH sides AS (
        SELECT workspace_id, channel_id, status AS was, NULL::delivery_status AS now_is, count(*) AS n,
               NULL::timestamptz AS due
        FROM old_rows
        GROUP BY workspace_id, channel_id, status
        UNION ALL
        SELECT workspace_id, channel_id, NULL, status, count(*),
               min(CASE WHEN status IN ('queued', 'retry')
                        THEN delivery_due_at(status, not_before, scheduled_for, next_retry_at) END)
        FROM new_rows
        GROUP BY workspace_id, channel_id, status
    ), flights AS MATERIALIZED (
        SELECT workspace_id, channel_id,
               (coalesce(sum(n) FILTER (WHERE now_is = 'sending'), 0)
                - coalesce(sum(n) FILTER (WHERE was = 'sending'), 0))::bigint AS more,
               coalesce(min(due), 'infinity') AS due,
               bool_or(now_is IN ('claimed', 'sending')) AS some_taken,
               bool_or(now_is IN ('queued', 'retry')) AS some_waiting,
               bool_or(is_final(now_is)) AS some_final,
               bool_or(now_is IN ('failed_permanent', 'dead')) AS some_given_up,
               bool_or(was IN ('failed_permanent', 'dead')) AS some_were_given_up
        FROM sides
        GROUP BY workspace_id, channel_id
    )
    SELECT bool_or(f.some_taken) AS some_taken,
           bool_or(f.some_waiting) AS some_waiting,
           bool_or(f.some_final) AS some_final,
           bool_or(f.some_given_up) AS some_given_up,
           bool_or(f.some_were_given_up) AS some_were_given_up,
           bool_or(f.more > 0) AS some_started,
           bool_or(f.more < 0) AS some_ended,
           array_agg(f.workspace_id ORDER BY f.workspace_id, f.channel_id) AS workspaces,
           array_agg(f.channel_id ORDER BY f.workspace_id, f.channel_id) AS channels,
           array_agg(greatest(f.more, 0) ORDER BY f.workspace_id, f.channel_id) AS started,
           array_agg(greatest(-f.more, 0) ORDER BY f.workspace_id, f.channel_id) AS ended,
           array_agg(f.due ORDER BY f.workspace_id, f.channel_id) AS dues
    INTO _seen
    FROM flights f;

    -- The queue is written by lists of keys, not by joins: a plan made for an empty queue would read all of it when it
    -- is full. One list per workspace: an id is unique in its workspace only. A claim has one token and one lease, so
    -- this is one loop pass for each of its workspaces.
    IF _seen.some_taken THEN
        FOR _taken IN
            SELECT n.workspace_id, array_agg(n.delivery_id) AS deliveries,
                   coalesce(n.claim_token, '00000000-0000-0000-0000-000000000000') AS claim_token,
                   n.sending_lease_until AS lease_until, n.status
            FROM new_rows n
            WHERE n.status IN ('claimed', 'sending')
            GROUP BY n.workspace_id, n.claim_token, n.sending_lease_until, n.status
            ORDER BY n.workspace_id
        LOOP
            UPDATE delivery_queue q
            SET claim_token = _taken.claim_token,
                lease_until = _taken.lease_until,
                status = _taken.status,
                by_hand = _taken.status = 'claimed'
            WHERE q.workspace_id = _taken.workspace_id
              AND q.delivery_id = ANY (_taken.deliveries);
        END LOOP;
    END IF;

    IF _seen.some_final THEN
        FOR _ended IN
            SELECT n.workspace_id, array_agg(n.delivery_id) AS deliveries
            FROM new_rows n
            WHERE is_final(n.status)
            GROUP BY n.workspace_id
            ORDER BY n.workspace_id
        LOOP
            DELETE FROM delivery_queue q
            WHERE q.workspace_id = _ended.workspace_id
              AND q.delivery_id = ANY (_ended.deliveries);
        END LOOP;
    END IF;

    -- dead_letters has a row while a delivery is dead or failed_permanent. A requeue deletes it, and with it the mark
    -- of skip(): if the delivery dies again, the alert counts it again.
    IF _seen.some_given_up THEN
        INSERT INTO dead_letters (workspace_id, delivery_id, channel_id, status, given_up_at)
        SELECT n.workspace_id, n.delivery_id, n.channel_id, n.status, _now
        FROM new_rows n
        WHERE n.status IN ('failed_permanent', 'dead')
        ON CONFLICT DO NOTHING;
    END IF;
    IF _seen.some_were_given_up AND _seen.some_waiting THEN
        DELETE FROM dead_letters g
        USING new_rows n
        WHERE g.workspace_id = n.workspace_id
          AND g.delivery_id = n.delivery_id
          AND n.status = 'retry';

        -- The functions set max_attempts themselves and count their event, which tells them apart from a statement that
        -- was written by hand; one that sets another number keeps it.
        PERFORM renew_attempts(b.workspace_id, array_agg(b.delivery_id))
        FROM (
            SELECT workspace_id, delivery_id, event_count, max_attempts
            FROM new_rows
            WHERE status = 'retry'
            INTERSECT
            SELECT workspace_id, delivery_id, event_count, max_attempts
            FROM old_rows
            WHERE status IN ('dead', 'failed_permanent')
        ) AS b
        GROUP BY b.workspace_id;
    END IF;

    IF _seen.some_waiting THEN
        -- The same lock that deliveries_after_insert takes for a new delivery: see claim_deliveries.
        PERFORM 1
        FROM (
            SELECT DISTINCT n.workspace_id, n.channel_id
            FROM new_rows n
            WHERE n.status IN ('queued', 'retry')
            ORDER BY n.workspace_id, n.channel_id
        ) AS w
        CROSS JOIN LATERAL (
            SELECT 1
            FROM channel_due d
            WHERE d.workspace_id = w.workspace_id
              AND d.channel_id = w.channel_id
            FOR KEY SHARE
        ) AS d;

        INSERT INTO delivery_queue AS q (workspace_id, delivery_id, channel_id, asleep, sort_at, status, due_at, slow)
        SELECT n.workspace_id, n.delivery_id, n.channel_id, n.due > _now,
               CASE WHEN n.due > _now THEN n.due ELSE greatest(n.created_at, c.low_water) END, n.status, n.due, n.slow
        FROM (
            SELECT m.workspace_id, m.delivery_id, m.channel_id, m.created_at, m.status, m.policy = 'publication' AS slow,
                   delivery_due_at(m.status, m.not_before, m.scheduled_for, m.next_retry_at) AS due
            FROM new_rows m
            WHERE m.status IN ('queued', 'retry')
        ) AS n
        CROSS JOIN LATERAL (
            SELECT d.low_water
            FROM channel_due d
            WHERE d.workspace_id = n.workspace_id
              AND d.channel_id = n.channel_id
            OFFSET 0
        ) AS c
        ORDER BY n.delivery_id
        ON CONFLICT (workspace_id, delivery_id) DO UPDATE
        SET asleep = excluded.asleep,
            sort_at = excluded.sort_at,
            status = excluded.status,
            due_at = excluded.due_at,
            by_hand = false,
            claim_token = NULL,
            lease_until = NULL;
    END IF;

    IF _seen.some_started THEN
        PERFORM count_in_flight('started', _seen.workspaces, _seen.channels, _seen.started);
    END IF;
    IF _seen.some_ended THEN
        PERFORM count_in_flight('ended', _seen.workspaces, _seen.channels, _seen.ended);
    END IF;
    IF _seen.some_waiting OR _seen.some_ended THEN
        PERFORM wake_channels(_seen.workspaces, _seen.channels, _seen.dues, _seen.ended);
    END IF;
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER deliveries_after_update
    AFTER UPDATE ON deliveries
    REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION deliveries_after_update();
