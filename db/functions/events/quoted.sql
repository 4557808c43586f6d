-- quoted(text, longest) -> what an event or an answer shows of a text that somebody else wrote: redacted and short
--
-- Only the beginning is looked at, and it is redacted before it is shortened. A secret that goes on behind it may look
-- like none, so the end of what was looked at is not shown, nor an address whose password may end behind it.
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
