-- delivery_born() trigger on deliveries, after INSERT, once per statement
--
-- Refuses a birth in any status but queued, failed_permanent and deduped, or without its message and channel, and puts
-- what is live into the queue. It is the foreign key of deliveries as well, for all rows of a statement at once: row by
-- row that was a third of the cost of enqueueing (see refers_to_deliveries for the other side).
--
-- Appends   delivery_queue, one row per queued delivery; given_up, one row per failed_permanent
-- Changes   channel_due, earlier only; inside a batch not yet: enqueue_posts does it at its
--           end for all, in one order
-- Locks     messages and channel_due FOR KEY SHARE, by key. The lock on channel_due keeps a concurrent claim from
--           declaring the channel empty (see claim_deliveries) until this transaction has ended
-- Raises    AP002 on an illegal first status, foreign_key_violation without message or channel
CREATE OR REPLACE FUNCTION delivery_born()
RETURNS trigger
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_nestloop = off
AS $$
DECLARE
    _all record;
    _channels record;
    _now timestamptz := clock_timestamp();
BEGIN
    WITH births AS MATERIALIZED ( -- few, of many rows: what is asked of all is asked of these
        SELECT n.workspace_id, n.message_id, n.status, min(n.created_at) AS oldest,
               min(due_of(n.status, n.not_before, n.scheduled_for, n.next_retry_at)) AS due
        FROM new_rows n
        GROUP BY n.workspace_id, n.message_id, n.status
    ), wanted AS MATERIALIZED (
        SELECT DISTINCT b.workspace_id, b.message_id FROM births b
    ), found AS MATERIALIZED (
        SELECT 1
        FROM (SELECT * FROM wanted ORDER BY workspace_id, message_id) AS w
        CROSS JOIN LATERAL (
            SELECT 1
            FROM messages m
            WHERE m.workspace_id = w.workspace_id
              AND m.message_id = w.message_id
            FOR KEY SHARE
        ) AS m
    )
    SELECT max(b.status) FILTER (WHERE b.status NOT IN ('queued', 'failed_permanent', 'deduped')) AS illegal,
           bool_or(b.status = 'failed_permanent') AS some_given_up,
           min(b.oldest) AS oldest,
           min(b.due) FILTER (WHERE b.status = 'queued') AS due,
           (SELECT count(*) FROM wanted) - (SELECT count(*) FROM found) AS lost
    INTO _all
    FROM births b;
    IF _all.illegal IS NOT NULL THEN
        RAISE EXCEPTION 'a delivery cannot be born as %', _all.illegal
            USING ERRCODE = 'AP002', HINT = 'insert it as queued, failed_permanent or deduped';
    END IF;
    IF _all.lost > 0 THEN
        RAISE EXCEPTION 'a delivery has no message' USING ERRCODE = 'foreign_key_violation';
    END IF;

    WITH wanted AS MATERIALIZED (
        SELECT DISTINCT n.workspace_id, n.channel_id FROM new_rows n
    ), found AS MATERIALIZED (
        SELECT d.*
        FROM (
            SELECT w.workspace_id, array_agg(w.channel_id) AS channel_ids
            FROM wanted w
            GROUP BY w.workspace_id
            ORDER BY w.workspace_id
        ) AS w
        CROSS JOIN LATERAL ( -- once its lock is had its low_water stays
            SELECT d.workspace_id, d.channel_id, d.low_water,
                   d.next_due_at > _all.due AND NOT d.waits_for_place AS due_too_late
            FROM channel_due d
            WHERE d.workspace_id = w.workspace_id
              AND d.channel_id = ANY (w.channel_ids)
            ORDER BY d.channel_id
            FOR KEY SHARE
        ) AS d
    )
    SELECT (SELECT count(*) FROM wanted) - count(*) AS lost,
           coalesce(bool_or(f.due_too_late), false) AS due_too_late,
           array_agg(f.workspace_id) FILTER (WHERE f.low_water > _all.oldest) AS raised_in,
           array_agg(f.channel_id) FILTER (WHERE f.low_water > _all.oldest) AS raised,
           array_agg(f.low_water) FILTER (WHERE f.low_water > _all.oldest) AS low_waters
    INTO _channels
    FROM found f;
    IF _channels.lost > 0 THEN
        RAISE EXCEPTION 'a delivery has no channel' USING ERRCODE = 'foreign_key_violation';
    END IF;

    INSERT INTO delivery_queue (workspace_id, delivery_id, channel_id, asleep, sort_at)
    SELECT n.workspace_id, n.delivery_id, n.channel_id, n.due > _now,
           CASE WHEN n.due > _now THEN n.due ELSE greatest(n.created_at, c.low_water) END
    FROM (
        SELECT b.workspace_id, b.delivery_id, b.channel_id, b.created_at,
               due_of(b.status, b.not_before, b.scheduled_for, b.next_retry_at) AS due
        FROM new_rows b
        WHERE b.status = 'queued'
    ) AS n
    LEFT JOIN unnest(_channels.raised_in, _channels.raised, _channels.low_waters)
        AS c (workspace_id, channel_id, low_water) USING (workspace_id, channel_id);

    IF _all.some_given_up THEN
        INSERT INTO given_up (workspace_id, delivery_id, channel_id, status, given_up_at)
        SELECT n.workspace_id, n.delivery_id, n.channel_id, n.status, _now
        FROM new_rows n
        WHERE n.status = 'failed_permanent';
    END IF;

    IF NOT _channels.due_too_late OR current_setting('autopost.in_batch', true) = 'on' THEN
        RETURN NULL;
    END IF;
    -- A new statement: it reads what a claim had made of the channels before their locks were had. Afterwards a claim makes
    -- a channel due later only for what keeps all of it back.
    PERFORM make_channels_due(n.workspace_id, array_agg(n.channel_id), array_agg(n.due))
    FROM (
        SELECT b.workspace_id, b.channel_id,
               min(due_of(b.status, b.not_before, b.scheduled_for, b.next_retry_at)) AS due
        FROM new_rows b
        WHERE b.status = 'queued'
        GROUP BY b.workspace_id, b.channel_id
    ) n
    GROUP BY n.workspace_id;
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER delivery_born
    AFTER INSERT ON deliveries
    REFERENCING NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION delivery_born();
