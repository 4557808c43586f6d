-- quoted_all(texts) -> a list of texts, each as quoted returns it
CREATE OR REPLACE FUNCTION quoted_all(p_texts jsonb)
RETURNS jsonb
LANGUAGE sql
IMMUTABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT coalesce(jsonb_agg(quoted(t.text) ORDER BY t.place), '[]')
    FROM jsonb_array_elements_text(p_texts) WITH ORDINALITY AS t (text, place)
$$;
