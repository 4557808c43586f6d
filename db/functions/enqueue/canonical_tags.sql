-- canonical_tags(tags) -> the tags in canonical form: trimmed, in lower case, each once, in order
--
-- The form in which ingest writes tags of posts, so both can be compared, whatever the locale of the database is.
CREATE OR REPLACE FUNCTION canonical_tags(p_tags text[])
RETURNS text[]
LANGUAGE sql
IMMUTABLE PARALLEL SAFE
AS $$
    SELECT ARRAY(
        SELECT t.tag
        FROM (SELECT lowercase(btrim(
                  g.tag, E' \t\n\v\f\r\x1c\x1d\x1e\x1f\u0085\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007'
                         '\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000')) AS tag
              FROM unnest(p_tags) AS g (tag)) AS t
        WHERE t.tag <> ''
        GROUP BY t.tag
        ORDER BY t.tag COLLATE "C"
    )
$$;
