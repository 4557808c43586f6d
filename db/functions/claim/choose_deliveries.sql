-- choose_deliveries(groups, limit, most, spare, tolerance, now) -> the deliveries to send now, locked, with their slots
--
-- The part of a claim that decides: from which channels, how many, in which slots. It works in any number of workspaces
-- at once, and in each of them as if it were alone.
--
-- groups         of lock_rate_groups
-- limit, most    how many deliveries of one workspace, and of all together
-- spare          see ready_channels
-- workspaces, places, slots, channels, renderings   row by row, in the order in which to send; null for none
-- looked_in      the workspaces in which a channel was looked at: another claim there finds something else
-- Steps          ready_channels, wake_sleepers, assign_slots, reschedule_channels, look_again
-- Locks          channels, deliveries, channel_due, channel_counters: each by key, without waiting
CREATE OR REPLACE FUNCTION choose_deliveries(
    p_groups tid[],
    p_limit int,
    p_most int,
    p_spare int,
    p_tolerance interval,
    p_now timestamptz,
    OUT workspaces uuid[],
    OUT places tid[],
    OUT slots timestamptz[],
    OUT channels uuid[],
    OUT renderings uuid[],
    OUT looked_in uuid[]
)
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
DECLARE
    _ready record;
    _chosen record;
BEGIN
    _ready := ready_channels(p_groups, p_limit, p_spare, p_tolerance, p_now);
    looked_in := _ready.workspaces;
    IF looked_in IS NULL THEN
        RETURN;
    END IF;
    PERFORM wake_sleepers(_ready.workspaces, _ready.channels, p_now);
    _chosen := assign_slots(
        _ready.workspaces, _ready.channels, _ready.places, p_limit, p_most, p_tolerance, p_now);
    PERFORM reschedule_channels(
        _ready.workspaces, _ready.channels, _chosen.counts, _chosen.more, _chosen.tight, p_now);
    IF _chosen.taken = '{}' THEN
        RETURN;
    END IF;

    -- Locked by key, then updated by place: see lock_claims. No lock is waited for, so the order is that of the turns.
    SELECT array_agg(t.workspace_id), array_agg(d.place), array_agg(t.slot_at), array_agg(d.channel_id),
           array_agg(d.rendering_id)
    INTO workspaces, places, slots, channels, renderings
    FROM unnest(_chosen.taken_in, _chosen.taken, _chosen.slots) AS t (workspace_id, delivery_id, slot_at)
    CROSS JOIN LATERAL (
        SELECT d.ctid AS place, d.channel_id, d.rendering_id
        FROM deliveries d
        WHERE d.workspace_id = t.workspace_id
          AND d.delivery_id = t.delivery_id
          AND d.status IN ('queued', 'retry')
          AND (d.scheduled_for IS NULL OR d.scheduled_for <= p_now + p_tolerance) -- not rescheduled meanwhile
        FOR NO KEY UPDATE SKIP LOCKED
    ) AS d;
    IF coalesce(cardinality(places), 0) < cardinality(_chosen.taken) THEN
        PERFORM look_again(_ready.workspaces, _ready.channels, _chosen.counts, p_now);
    END IF;
END $$;
