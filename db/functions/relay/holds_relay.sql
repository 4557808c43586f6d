-- holds_relay(holder) -> whether the round of the relay is this holder's, and stays so until the transaction ends
CREATE OR REPLACE FUNCTION holds_relay(p_holder uuid)
RETURNS boolean
LANGUAGE sql
VOLATILE
AS $$
    SELECT EXISTS (SELECT 1 FROM leader_leases WHERE job = 'relay' AND holder = p_holder FOR SHARE)
$$;
