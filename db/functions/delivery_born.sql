-- delivery_born() trigger on deliveries, after INSERT, once per statement
--
-- Refuses a birth in any status but queued, failed_permanent and deduped, and puts what is live into the queue.
--
-- Appends   delivery_queue, one row per queued delivery; given_up, one row per failed_permanent
-- Changes   channel_due, earlier only; inside a batch not yet: enqueue_messages_and_deliveries_batch does it at its
--           end for all, in one order
-- Locks     channel_due by key; the foreign key already holds each channel FOR KEY SHARE, which is what keeps
--           a concurrent claim from declaring the channel empty (see claim_deliveries)
-- Raises    AP002 on an illegal first status.
CREATE OR REPLACE FUNCTION delivery_born()
RETURNS trigger
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
DECLARE
    _illegal delivery_status;
    _now timestamptz := clock_timestamp();
BEGIN
    SELECT status
    INTO _illegal
    FROM new_rows
    WHERE status NOT IN ('queued', 'failed_permanent', 'deduped')
    LIMIT 1;

    IF FOUND THEN
        RAISE EXCEPTION 'a delivery cannot be born as %', _illegal
            USING ERRCODE = 'AP002', HINT = 'insert it as queued, failed_permanent or deduped';
    END IF;

    INSERT INTO delivery_queue (workspace_id, delivery_id, channel_id, asleep, sort_at, calls)
    SELECT n.workspace_id, n.delivery_id, n.channel_id, due > _now,
           CASE WHEN due > _now THEN due ELSE n.created_at END,
           coalesce(r.calls, 1)
    FROM new_rows n
    CROSS JOIN LATERAL due_of(n.status, n.not_before, n.scheduled_for, n.next_retry_at) AS due
    LEFT JOIN renderings r
      ON r.workspace_id = n.workspace_id
     AND r.rendering_id = n.rendering_id
    WHERE n.status = 'queued';

    INSERT INTO given_up (workspace_id, delivery_id, channel_id, status, given_up_at)
    SELECT n.workspace_id, n.delivery_id, n.channel_id, n.status, _now
    FROM new_rows n
    WHERE n.status = 'failed_permanent';

    IF current_setting('autopost.in_batch', true) = 'on' THEN
        RETURN NULL;
    END IF;
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
