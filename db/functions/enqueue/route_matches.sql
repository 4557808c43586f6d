-- route_matches(tags, route_filter) -> whether a post with these tags passes the filter
--
-- No filter passes all. include_any: one must be present; include_all: all must; exclude: none may.
-- A missing or empty list has no effect.
CREATE OR REPLACE FUNCTION route_matches(p_tags text[], p_filter jsonb)
RETURNS boolean
LANGUAGE sql
STABLE PARALLEL SAFE
AS $$
    SELECT p_filter IS NULL
        OR ((coalesce(jsonb_array_length(p_filter -> 'include_any'), 0) = 0 OR p_filter -> 'include_any' ?| p_tags)
            AND to_jsonb(p_tags) @> coalesce(p_filter -> 'include_all', '[]')
            AND NOT coalesce(p_filter -> 'exclude' ?| p_tags, false))
$$;
