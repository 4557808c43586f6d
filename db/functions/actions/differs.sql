-- differs(before, after) -> whether a client would see a difference
--
-- Payloads are compared as jsonb: the order of keys is no difference. The time of an update is none either.
CREATE OR REPLACE FUNCTION differs(p_before bot_actions, p_after bot_actions)
RETURNS boolean
LANGUAGE sql
IMMUTABLE
AS $$
    SELECT (p_before.status, p_before.display_text, p_before.payload)
           IS DISTINCT FROM (p_after.status, p_after.display_text, p_after.payload)
$$;
