-- make_channels_due(workspace_id, channel_ids, dues) -> how many channels were brought forward
--
-- Something in these channels may be claimed at these times. Moves channel_due to an earlier time, never to a later.
-- A channel that waits for a free place is left alone: the commit that frees one makes it due.
--
-- Locks     channel_due by channel_id
CREATE OR REPLACE FUNCTION make_channels_due(p_workspace_id uuid, p_channel_ids uuid[], p_dues timestamptz[])
RETURNS int
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_nestloop = on
AS $$
DECLARE
    _places tid[];
    _dues timestamptz[];
    _moved int;
BEGIN
    SELECT array_agg(d.place), array_agg(w.due)
    INTO _places, _dues
    FROM (SELECT * FROM unnest(p_channel_ids, p_dues) AS g (channel_id, due) ORDER BY g.channel_id) AS w
    CROSS JOIN LATERAL ( -- by key, whatever the planner estimates
        SELECT d.ctid AS place
        FROM channel_due d
        WHERE d.workspace_id = p_workspace_id
          AND d.channel_id = w.channel_id
          AND d.next_due_at > w.due
          AND NOT d.waits_for_place
        FOR NO KEY UPDATE
    ) AS d;
    IF _places IS NULL THEN
        RETURN 0;
    END IF;

    -- Locked by key, then written by place: this needs a statement that sees what the lock waited for.
    UPDATE channel_due d
    SET next_due_at = least(d.next_due_at, w.due)
    FROM unnest(_places, _dues) AS w (place, due)
    WHERE d.ctid = w.place;

    GET DIAGNOSTICS _moved = ROW_COUNT;
    RETURN _moved;
END $$;
