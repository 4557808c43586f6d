-- Every slot that is taken after the first of a delivery, which send_attempt tells, and every one that was missed and
-- given back: take_slot, and a note of it beside.
CREATE TABLE slot_log (
    workspace_id uuid NOT NULL,
    channel_id uuid NOT NULL,
    slot_at timestamptz NOT NULL,
    beside boolean NOT NULL,
    missed timestamptz
);

ALTER FUNCTION take_slot(uuid, uuid, uuid, interval, timestamptz, boolean, timestamptz) RENAME TO take_slot_itself;

CREATE FUNCTION take_slot(
    p_workspace_id uuid,
    p_delivery_id uuid,
    p_claim_token uuid,
    p_patience interval DEFAULT '5 seconds',
    p_now timestamptz DEFAULT NULL,
    p_beside boolean DEFAULT false,
    p_missed timestamptz DEFAULT NULL
)
RETURNS TABLE (slot_at timestamptz, taken boolean)
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    _slot record;
BEGIN
    SELECT * INTO _slot
    FROM take_slot_itself(p_workspace_id, p_delivery_id, p_claim_token, p_patience, p_now, p_beside, p_missed);
    INSERT INTO slot_log (workspace_id, channel_id, slot_at, beside, missed)
    SELECT d.workspace_id, d.channel_id, _slot.slot_at, p_beside, p_missed
    FROM deliveries d
    WHERE d.workspace_id = p_workspace_id
      AND d.delivery_id = p_delivery_id
      AND _slot.taken;
    RETURN QUERY SELECT _slot.slot_at, _slot.taken WHERE _slot.slot_at IS NOT NULL;
END $$;

GRANT EXECUTE ON FUNCTION take_slot(uuid, uuid, uuid, interval, timestamptz, boolean, timestamptz)
    TO autopost_dispatcher;
