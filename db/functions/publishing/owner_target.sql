-- owner_target(owner) -> 'telegram' | 'smtp' | 'webhook' | null: how the owner of a publication is told
--
-- Null: a name is for people to read. It stands in the alert only.
CREATE OR REPLACE FUNCTION owner_target(p_owner text)
RETURNS text
LANGUAGE sql
IMMUTABLE PARALLEL SAFE
AS $$
    SELECT CASE
        WHEN p_owner ~* '^telegram:.' THEN 'telegram'
        WHEN p_owner ~* '^mailto:.' THEN 'smtp'
        WHEN p_owner ~* '^https://.' THEN 'webhook'
    END
$$;
