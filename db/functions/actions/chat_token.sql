-- chat_token(workspace_id, chat_id) -> the name of a chat for events, subjects, logs and spans
--
-- The number of a chat is that of a person, so it appears nowhere else than in the tables of the bot. The token is the
-- beginning of a digest in base32 and a safe token of a subject. autopost_contracts.ids has the same function.
CREATE OR REPLACE FUNCTION chat_token(p_workspace_id uuid, p_chat_id text)
RETURNS text
LANGUAGE sql
IMMUTABLE
SET search_path = public, pg_temp
AS $$
    SELECT string_agg(substr('abcdefghijklmnopqrstuvwxyz234567', substring(d.bits FROM nth * 5 + 1 FOR 5)::int + 1, 1),
                      '' ORDER BY nth)
    FROM (
        SELECT ('x' || left(encode(sha256(convert_to(p_workspace_id::text || p_chat_id, 'UTF8')), 'hex'), 34))::bit(136)
               AS bits
    ) AS d
    CROSS JOIN generate_series(0, 25) AS nth
$$;
