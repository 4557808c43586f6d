-- chat_token(workspace_id, chat_id) -> the name of a chat for events, subjects, logs and spans
--
-- The number of a chat is that of a person, so it appears nowhere else than in the tables of the bot. The token is the
-- beginning of a digest in base32 and a safe token of a subject. autopost_contracts.ids has the same function.
-- Written out, because each turn of a bot and each reply asks for it: as a query it was a sixth of their cost.
CREATE OR REPLACE FUNCTION chat_token(p_workspace_id uuid, p_chat_id text)
RETURNS text
LANGUAGE plpgsql
IMMUTABLE
SET search_path = public, pg_temp
AS $$
DECLARE
    _letters CONSTANT text := 'abcdefghijklmnopqrstuvwxyz234567';
    _bits bit(136) := ('x' || left(encode(sha256(convert_to(p_workspace_id::text || p_chat_id, 'UTF8')), 'hex'), 34))::bit(136);
    _first bigint := substring(_bits FROM 1 FOR 60)::bit(60)::bigint;
    _second bigint := substring(_bits FROM 61 FOR 60)::bit(60)::bigint;
    _last bigint := substring(_bits FROM 121 FOR 10)::bit(10)::bigint;
BEGIN
    RETURN substr(_letters, (_first >> 55 & 31)::int + 1, 1) || substr(_letters, (_first >> 50 & 31)::int + 1, 1)
        || substr(_letters, (_first >> 45 & 31)::int + 1, 1) || substr(_letters, (_first >> 40 & 31)::int + 1, 1)
        || substr(_letters, (_first >> 35 & 31)::int + 1, 1) || substr(_letters, (_first >> 30 & 31)::int + 1, 1)
        || substr(_letters, (_first >> 25 & 31)::int + 1, 1) || substr(_letters, (_first >> 20 & 31)::int + 1, 1)
        || substr(_letters, (_first >> 15 & 31)::int + 1, 1) || substr(_letters, (_first >> 10 & 31)::int + 1, 1)
        || substr(_letters, (_first >> 5 & 31)::int + 1, 1) || substr(_letters, (_first >> 0 & 31)::int + 1, 1)
        || substr(_letters, (_second >> 55 & 31)::int + 1, 1) || substr(_letters, (_second >> 50 & 31)::int + 1, 1)
        || substr(_letters, (_second >> 45 & 31)::int + 1, 1) || substr(_letters, (_second >> 40 & 31)::int + 1, 1)
        || substr(_letters, (_second >> 35 & 31)::int + 1, 1) || substr(_letters, (_second >> 30 & 31)::int + 1, 1)
        || substr(_letters, (_second >> 25 & 31)::int + 1, 1) || substr(_letters, (_second >> 20 & 31)::int + 1, 1)
        || substr(_letters, (_second >> 15 & 31)::int + 1, 1) || substr(_letters, (_second >> 10 & 31)::int + 1, 1)
        || substr(_letters, (_second >> 5 & 31)::int + 1, 1) || substr(_letters, (_second >> 0 & 31)::int + 1, 1)
        || substr(_letters, (_last >> 5 & 31)::int + 1, 1) || substr(_letters, (_last >> 0 & 31)::int + 1, 1);
END $$;
