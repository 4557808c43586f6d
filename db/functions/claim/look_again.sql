-- look_again(workspaces, channels, counts, now)
--
-- Some of the deliveries that a claim has chosen are held or were moved by another transaction. Their slots are lost,
-- their turn is not: their channels are due again in a moment. Nor is their place: a channel that was full with such a
-- delivery alone has nothing in flight whose end would make it due.
--
-- Done before next_due_at is read: the caller sleeps until then.
--
-- Locks     channel_due by key, SKIP LOCKED: a held row was not rescheduled, so it is still due
CREATE OR REPLACE FUNCTION look_again(p_workspaces uuid[], p_channels uuid[], p_counts int[], p_now timestamptz)
RETURNS void
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
DECLARE
    _places tid[];
BEGIN
    SELECT array_agg(d.place)
    INTO _places
    FROM unnest(p_workspaces, p_channels, p_counts) AS p (workspace_id, channel_id, taken)
    CROSS JOIN LATERAL (
        SELECT d.ctid AS place
        FROM channel_due d
        WHERE d.workspace_id = p.workspace_id
          AND d.channel_id = p.channel_id
          AND p.taken > 0
        FOR NO KEY UPDATE SKIP LOCKED
    ) AS d;

    UPDATE channel_due d
    SET next_due_at = least(d.next_due_at, p_now + interval '5 milliseconds'),
        waits_for_place = false
    WHERE d.ctid = ANY (_places);
END $$;
