-- bot_may_take(circuit, trial, stalled_until, now) -> how many chats a bot may take from this rate group
--
-- As for posts (claimable_at): none of an open circuit, and of a half one only the one whose reply is its trial.
CREATE OR REPLACE FUNCTION bot_may_take(
    p_circuit circuit_state,
    p_trial uuid,
    p_stalled_until timestamptz,
    p_now timestamptz
)
RETURNS int
LANGUAGE sql
IMMUTABLE PARALLEL SAFE
AS $$
    SELECT CASE
        WHEN p_circuit = 'half' THEN CASE WHEN p_trial IS NULL THEN 1 ELSE 0 END
        WHEN claimable_at(p_circuit, p_stalled_until) <= p_now THEN 1000000
        ELSE 0
    END
$$;
