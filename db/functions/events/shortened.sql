-- shortened(document, longest, most, depth) -> the document with texts, lists and objects cut to these limits
CREATE OR REPLACE FUNCTION shortened(p_document jsonb, p_longest int, p_most int, p_depth int DEFAULT 4)
RETURNS jsonb
LANGUAGE plpgsql
IMMUTABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
BEGIN
    CASE jsonb_typeof(p_document)
        WHEN 'string' THEN
            RETURN CASE WHEN length(p_document #>> '{}') > p_longest
                        THEN to_jsonb(left(p_document #>> '{}', p_longest - 1) || '…') ELSE p_document END;
        WHEN 'array' THEN
            RETURN CASE WHEN p_depth = 0 THEN '[]' ELSE (
                SELECT coalesce(jsonb_agg(shortened(e.value, p_longest, p_most, p_depth - 1) ORDER BY e.place), '[]')
                FROM jsonb_array_elements(p_document) WITH ORDINALITY AS e (value, place)
                WHERE e.place <= p_most
            ) END;
        WHEN 'object' THEN
            RETURN CASE WHEN p_depth = 0 THEN '{}' ELSE (
                SELECT coalesce(jsonb_object_agg(left(e.key, p_longest),
                                                 shortened(e.value, p_longest, p_most, p_depth - 1)), '{}')
                FROM (
                    SELECT e.key, e.value FROM jsonb_each(p_document) AS e (key, value) LIMIT p_most
                ) AS e
            ) END;
        ELSE
            RETURN CASE WHEN length(p_document::text) > p_longest THEN 'null' ELSE p_document END;
    END CASE;
END $$;
