-- Every slot that is taken after the first of a delivery, which send_attempt tells: take_slot, and a note of it beside.
CREATE TABLE slot_log (
    workspace_id uuid NOT NULL,
    channel_id uuid NOT NULL,
    slot_at timestamptz NOT NULL,
    beside boolean NOT NULL
);

ALTER FUNCTION take_slot(uuid, uuid, uuid, interval, timestamptz, boolean) RENAME TO take_slot_itself;

CREATE FUNCTION take_slot(
    p_workspace_id uuid,
    p_delivery_id uuid,
    p_claim_token uuid,
    p_patience interval DEFAULT '5 seconds',
    p_now timestamptz DEFAULT NULL,
    p_beside boolean DEFAULT false
)
RETURNS timestamptz
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
DECLARE
    _slot timestamptz := take_slot_itself(p_workspace_id, p_delivery_id, p_claim_token, p_patience, p_now, p_beside);
BEGIN
    INSERT INTO slot_log (workspace_id, channel_id, slot_at, beside)
    SELECT d.workspace_id, d.channel_id, _slot, p_beside
    FROM deliveries d
    WHERE d.workspace_id = p_workspace_id
      AND d.delivery_id = p_delivery_id
      AND _slot <= clock_timestamp() + p_patience; -- one that is further away was named, not taken
    RETURN _slot;
END $$;

GRANT EXECUTE ON FUNCTION take_slot(uuid, uuid, uuid, interval, timestamptz, boolean) TO autopost_dispatcher;
