-- deliveries_after_insert() trigger on deliveries, after INSERT, once per statement
--
-- Refuses a new delivery with a status other than queued, failed_permanent and deduped, or without its message or
-- channel. Adds queued deliveries to the queue. It is also the foreign key of deliveries (refers_to_deliveries is the
-- other side), for all rows of a statement at once: row by row it was a third of the cost of an enqueue.
--
-- Appends   delivery_queue, one row per queued delivery; dead_letters, one row per failed_permanent
-- Changes   channel_due, only to an earlier time; during enqueue_posts it only notes in autopost.in_batch that some are
--           due too late: enqueue_posts moves them at its end
-- Locks     messages and channel_due FOR KEY SHARE, by key. The lock on channel_due keeps a concurrent claim from
--           declaring the channel empty (see claim_deliveries) until this transaction has ended
-- Raises    AP002 on an illegal first status, foreign_key_violation without message or channel
CREATE OR REPLACE FUNCTION deliveries_after_insert()
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
    WITH inserted AS MATERIALIZED ( -- one row per message and status, far fewer than deliveries
        SELECT n.workspace_id, n.message_id, n.status, min(n.created_at) AS oldest,
               min(delivery_due_at(n.status, n.not_before, n.scheduled_for, n.next_retry_at)) AS due
        FROM new_rows n
        GROUP BY n.workspace_id, n.message_id, n.status
    ), wanted AS MATERIALIZED (
        SELECT DISTINCT b.workspace_id, b.message_id FROM inserted b
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
    FROM inserted b;
    IF _all.illegal IS NOT NULL THEN
        RAISE EXCEPTION 'a new delivery cannot have the status %', _all.illegal
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
        CROSS JOIN LATERAL ( -- after this lock low_water does not change
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

    INSERT INTO delivery_queue (workspace_id, delivery_id, channel_id, asleep, sort_at, due_at, slow)
    SELECT n.workspace_id, n.delivery_id, n.channel_id, n.due > _now,
           CASE WHEN n.due > _now THEN n.due ELSE greatest(n.created_at, c.low_water) END, n.due, n.slow
    FROM (
        SELECT b.workspace_id, b.delivery_id, b.channel_id, b.created_at, b.policy = 'publication' AS slow,
               delivery_due_at(b.status, b.not_before, b.scheduled_for, b.next_retry_at) AS due
        FROM new_rows b
        WHERE b.status = 'queued'
    ) AS n
    LEFT JOIN unnest(_channels.raised_in, _channels.raised, _channels.low_waters)
        AS c (workspace_id, channel_id, low_water) USING (workspace_id, channel_id);

    IF _all.some_given_up THEN
        INSERT INTO dead_letters (workspace_id, delivery_id, channel_id, status, given_up_at)
        SELECT n.workspace_id, n.delivery_id, n.channel_id, n.status, _now
        FROM new_rows n
        WHERE n.status = 'failed_permanent';
    END IF;

    IF NOT _channels.due_too_late THEN
        RETURN NULL;
    ELSIF current_setting('autopost.in_batch', true) IN ('on', 'late') THEN
        PERFORM set_config('autopost.in_batch', 'late', true);
        RETURN NULL;
    END IF;
    -- A new statement: it reads what a claim made of the channels before their locks were granted. Afterwards a claim
    -- postpones a channel only for reasons that hold all of it.
    PERFORM make_channels_due(n.workspace_id, array_agg(n.channel_id), array_agg(n.due))
    FROM (
        SELECT b.workspace_id, b.channel_id,
               min(delivery_due_at(b.status, b.not_before, b.scheduled_for, b.next_retry_at)) AS due
        FROM new_rows b
        WHERE b.status = 'queued'
        GROUP BY b.workspace_id, b.channel_id
    ) n
    GROUP BY n.workspace_id;
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER deliveries_after_insert
    AFTER INSERT ON deliveries
    REFERENCING NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION deliveries_after_insert();
