-- take_slot(workspace_id, delivery_id, claim_token, …, beside, missed)
-- -> slot_at, taken; no row when the delivery is not the caller's to send
--
-- take_slots for one call.
CREATE OR REPLACE FUNCTION take_slot(
    p_workspace_id uuid,
    p_delivery_id uuid,
    p_claim_token uuid,
    p_patience interval DEFAULT '5 seconds',
    p_now timestamptz DEFAULT NULL,
    p_beside boolean DEFAULT false,
    p_missed timestamptz DEFAULT NULL
)
RETURNS TABLE (slot_at timestamptz, taken boolean)
LANGUAGE sql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT s.slot_at, s.taken
    FROM take_slots(ARRAY[p_workspace_id], ARRAY[p_delivery_id], ARRAY[p_claim_token], ARRAY[p_beside],
                    ARRAY[p_missed], p_patience, p_now) AS s
$$;
