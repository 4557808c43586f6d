-- quoted(text, longest) -> what an event or a response shows of a foreign text: redacted and short
--
-- Reads only the beginning, and redacts it before shortening. A secret cut off at its end may not be recognised, so the
-- end of what was read is not shown, nor an address whose password may end beyond it.
CREATE OR REPLACE FUNCTION quoted(p_text text, p_longest int DEFAULT 80)
RETURNS text
LANGUAGE sql
IMMUTABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT CASE WHEN length(p_text) > 2048
                THEN left(regexp_replace(q.shown, '://[^\s/]*$', '://***'), least(p_longest - 1, length(q.shown) - 256)) || '…'
                WHEN length(q.shown) > p_longest THEN left(q.shown, p_longest - 1) || '…'
                ELSE q.shown END
    FROM (SELECT redact(left(p_text, 2048)) AS shown) AS q
$$;
