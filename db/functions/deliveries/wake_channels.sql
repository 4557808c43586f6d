-- wake_channels(workspace_ids, channel_ids, dues, ended)
--
-- After deliveries have moved: brings each channel forward to when something in it may be claimed (`dues`, infinity for
-- nothing), and makes a channel due that waited for a place and has sends ended: at once, or when its own rate has the
-- next slot. One statement locks for both, so that all who wait for channel_due lock it in one order.
--
-- Locks     channel_due by workspace_id and channel_id
CREATE OR REPLACE FUNCTION wake_channels(
    p_workspace_ids uuid[],
    p_channel_ids uuid[],
    p_dues timestamptz[],
    p_ended bigint[]
)
RETURNS void
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
DECLARE
    _places tid[];
    _dues timestamptz[];
    _freed boolean[];
BEGIN
    SELECT array_agg(d.place), array_agg(d.freed),
           array_agg(least(w.due, CASE WHEN d.freed THEN (
               SELECT greatest(clock_timestamp(), c.next_allowed_at)
               FROM channels c
               WHERE c.workspace_id = w.workspace_id
                 AND c.channel_id = w.channel_id
           ) END))
    INTO _places, _freed, _dues
    FROM (
        SELECT *
        FROM unnest(p_workspace_ids, p_channel_ids, p_dues, p_ended) AS g (workspace_id, channel_id, due, ended)
        ORDER BY g.workspace_id, g.channel_id
    ) AS w
    CROSS JOIN LATERAL ( -- by key, whatever the planner estimates
        SELECT d.ctid AS place, w.ended > 0 AND d.waits_for_place AS freed
        FROM channel_due d
        WHERE d.workspace_id = w.workspace_id
          AND d.channel_id = w.channel_id
          AND ((w.ended > 0 AND d.waits_for_place) OR (d.next_due_at > w.due AND NOT d.waits_for_place))
        FOR NO KEY UPDATE
    ) AS d;
    IF _places IS NULL THEN
        RETURN;
    END IF;

    -- Locked by key, then written by place: a join by key would be planned for the size that the table had, and read
    -- the channels of all workspaces.
    UPDATE channel_due d
    SET next_due_at = least(d.next_due_at, w.due),
        waits_for_place = d.waits_for_place AND NOT w.freed
    FROM unnest(_places, _dues, _freed) AS w (place, due, freed)
    WHERE d.ctid = w.place;
END $$;
