-- delivery_moved() trigger on deliveries, after UPDATE, once per statement
--
-- Refuses illegal moves, whoever makes them, and carries the legal ones into delivery_queue, given_up,
-- channel_counters and channel_due. An operator's UPDATE and our functions take this same path, so the tables cannot disagree.
--
-- Changes   delivery_queue (taken, freed, woken, removed), channel_counters, channel_due
-- Locks     channels FOR KEY SHARE (only for rows that wait again), delivery_queue, channel_counters,
--           channel_due: each by key
-- Raises    AP002 on an illegal transition, AP003 when attempt moves any other way than up by one into sending,
--           AP004 when a key changes.
CREATE OR REPLACE FUNCTION delivery_moved()
RETURNS trigger
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
DECLARE
    _seen record;
    _now timestamptz := clock_timestamp();
BEGIN
    -- The two sides are grouped, not joined: a planner that takes them for one row would compare each with each.
    WITH sides AS (
        SELECT workspace_id, channel_id, delivery_id, status AS was, attempt AS attempt_was,
               NULL::delivery_status AS now_is, NULL::int AS attempt_is, NULL::timestamptz AS due
        FROM old_rows
        UNION ALL
        SELECT workspace_id, channel_id, delivery_id, NULL, NULL, status, attempt,
               CASE WHEN status IN ('queued', 'retry')
                    THEN due_of(status, not_before, scheduled_for, next_retry_at) END
        FROM new_rows
    ), moves AS MATERIALIZED (
        SELECT workspace_id, channel_id, delivery_id, max(was) AS was, max(now_is) AS now_is,
               max(attempt_was) AS attempt_was, max(attempt_is) AS attempt_is, max(due) AS due
        FROM sides
        GROUP BY workspace_id, channel_id, delivery_id
    ), flights AS MATERIALIZED (
        SELECT workspace_id, channel_id,
               count(*) FILTER (WHERE now_is = 'sending' AND was <> 'sending') AS started,
               count(*) FILTER (WHERE was = 'sending' AND now_is <> 'sending') AS ended,
               coalesce(min(due), 'infinity') AS due
        FROM moves
        GROUP BY workspace_id, channel_id
    )
    SELECT bool_or(m.was IS NULL OR m.now_is IS NULL) AS rekeyed,
           min(format('%s cannot become %s', m.was, m.now_is))
               FILTER (WHERE m.was <> m.now_is AND NOT is_legal_transition(m.was, m.now_is)) AS illegal,
           min(format('attempt of a delivery moved from %s to %s', m.attempt_was, m.attempt_is))
               FILTER (WHERE m.attempt_is <> m.attempt_was
                         AND NOT (m.attempt_is = m.attempt_was + 1 AND m.now_is = 'sending' AND m.was <> 'sending'))
               AS miscounted,
           bool_or(m.now_is IN ('claimed', 'sending')) AS some_taken,
           bool_or(m.now_is IN ('queued', 'retry')) AS some_waiting,
           bool_or(m.now_is IN ('sent', 'deduped', 'failed_permanent', 'dead')) AS some_final,
           bool_or(m.now_is IN ('failed_permanent', 'dead')) AS some_given_up,
           bool_or(m.was IN ('failed_permanent', 'dead') AND m.now_is = 'retry') AS some_brought_back,
           (SELECT array_agg(f.workspace_id ORDER BY f.workspace_id, f.channel_id) FROM flights f) AS workspaces,
           (SELECT array_agg(f.channel_id ORDER BY f.workspace_id, f.channel_id) FROM flights f) AS channels,
           (SELECT array_agg(f.started ORDER BY f.workspace_id, f.channel_id) FROM flights f) AS started,
           (SELECT array_agg(f.ended ORDER BY f.workspace_id, f.channel_id) FROM flights f) AS ended,
           (SELECT array_agg(f.due ORDER BY f.workspace_id, f.channel_id) FROM flights f) AS dues
    INTO _seen
    FROM moves m;

    IF _seen.rekeyed THEN
        RAISE EXCEPTION 'the key of a delivery cannot change' USING ERRCODE = 'AP004';
    ELSIF _seen.illegal IS NOT NULL THEN
        RAISE EXCEPTION 'a delivery that is %', _seen.illegal USING ERRCODE = 'AP002';
    ELSIF _seen.miscounted IS NOT NULL THEN
        RAISE EXCEPTION '%', _seen.miscounted
            USING ERRCODE = 'AP003', HINT = 'attempt rises by one on the way into sending and never otherwise';
    END IF;

    IF _seen.some_taken THEN
        UPDATE delivery_queue q
        SET claim_token = coalesce(n.claim_token, '00000000-0000-0000-0000-000000000000'),
            lease_until = n.sending_lease_until
        FROM new_rows n
        WHERE q.workspace_id = n.workspace_id
          AND q.delivery_id = n.delivery_id
          AND n.status IN ('claimed', 'sending');
    END IF;

    IF _seen.some_final THEN
        DELETE FROM delivery_queue q
        USING new_rows n
        WHERE q.workspace_id = n.workspace_id
          AND q.delivery_id = n.delivery_id
          AND n.status IN ('sent', 'deduped', 'failed_permanent', 'dead');
    END IF;

    -- given_up has a row while a delivery is dead or failed_permanent. One that is brought back loses it, and with
    -- it the mark of skip(): should it die again, the alert sees it again.
    IF _seen.some_given_up THEN
        INSERT INTO given_up (workspace_id, delivery_id, channel_id, status, given_up_at)
        SELECT n.workspace_id, n.delivery_id, n.channel_id, n.status, _now
        FROM new_rows n
        WHERE n.status IN ('failed_permanent', 'dead')
        ON CONFLICT DO NOTHING;
    END IF;
    IF _seen.some_brought_back THEN
        DELETE FROM given_up g
        USING new_rows n
        WHERE g.workspace_id = n.workspace_id
          AND g.delivery_id = n.delivery_id
          AND n.status = 'retry';
    END IF;

    IF _seen.some_waiting THEN
        -- The same lock that the foreign key takes for a new delivery: see claim_deliveries.
        PERFORM 1
        FROM channels c
        WHERE (c.workspace_id, c.channel_id) IN
              (SELECT n.workspace_id, n.channel_id FROM new_rows n WHERE n.status IN ('queued', 'retry'))
        ORDER BY c.channel_id
        FOR KEY SHARE;

        INSERT INTO delivery_queue AS q (workspace_id, delivery_id, channel_id, asleep, sort_at, calls)
        SELECT n.workspace_id, n.delivery_id, n.channel_id, due > _now,
               CASE WHEN due > _now THEN due ELSE n.created_at END,
               -- The calls that are left: what was acknowledged is not sent again.
               greatest(coalesce(r.calls, 1)
                        - coalesce(jsonb_array_length(n.render_meta #> '{series_progress,sent_items}'), 0), 1)
        FROM new_rows n
        CROSS JOIN LATERAL due_of(n.status, n.not_before, n.scheduled_for, n.next_retry_at) AS due
        LEFT JOIN renderings r
          ON r.workspace_id = n.workspace_id
         AND r.rendering_id = n.rendering_id
        WHERE n.status IN ('queued', 'retry')
        ORDER BY n.delivery_id
        ON CONFLICT (workspace_id, delivery_id) DO UPDATE
        SET asleep = excluded.asleep,
            sort_at = excluded.sort_at,
            calls = excluded.calls,
            claim_token = NULL,
            lease_until = NULL;
    END IF;

    PERFORM count_flight('started', _seen.workspaces, _seen.channels, _seen.started);
    PERFORM count_flight('ended', _seen.workspaces, _seen.channels, _seen.ended);

    IF _seen.some_waiting OR 0 < ANY (_seen.ended) THEN
        PERFORM wake_channels(_seen.workspaces, _seen.channels, _seen.dues, _seen.ended);
    END IF;
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER delivery_moved
    AFTER UPDATE ON deliveries
    REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION delivery_moved();
