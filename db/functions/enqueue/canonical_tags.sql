-- canonical_tags(tags) -> the tags in canonical form: trimmed, in lower case, each once, in order
--
-- The form in which ingest writes tags of posts, so both can be compared.
CREATE OR REPLACE FUNCTION canonical_tags(p_tags text[])
RETURNS text[]
LANGUAGE sql
IMMUTABLE PARALLEL SAFE
AS $$
    SELECT ARRAY(
        SELECT t.tag
        FROM (SELECT lower(regexp_replace(g.tag, '^\s+|\s+$', '', 'g')) AS tag FROM unnest(p_tags) AS g (tag)) AS t
        WHERE t.tag <> ''
        GROUP BY t.tag
        ORDER BY t.tag COLLATE "C"
    )
$$;
