-- holds_relay(holder) -> whether this holder has the relay job, and keeps it until the transaction ends
CREATE OR REPLACE FUNCTION holds_relay(p_holder uuid)
RETURNS boolean
LANGUAGE sql
VOLATILE
AS $$
    SELECT EXISTS (SELECT 1 FROM leader_leases WHERE job = 'relay' AND holder = p_holder FOR SHARE)
$$;
