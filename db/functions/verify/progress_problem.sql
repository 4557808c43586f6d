-- progress_problem(series_progress, calls, parts)
-- -> what is wrong with the parts recorded as acknowledged; null when nothing is
--
-- calls   how many calls the plan has; null when it is gone
-- parts   the provider's ids part by part, as the `sent` event has them; null when it does not. Where they differ from
--         the recorded ones, a part that was acknowledged was sent a second time
CREATE OR REPLACE FUNCTION progress_problem(p_progress jsonb, p_calls int, p_parts jsonb)
RETURNS text
LANGUAGE sql
IMMUTABLE PARALLEL SAFE
AS $$
    SELECT CASE
        WHEN p_progress IS NULL THEN NULL
        WHEN x.items IS DISTINCT FROM x.ids THEN format('%s parts, ids of %s', x.items, x.ids)
        WHEN p_progress -> 'sent_items' <> coalesce((SELECT jsonb_agg(n) FROM generate_series(0, x.items - 1) AS n), '[]')
            THEN 'parts out of order'
        WHEN x.items > p_calls THEN format('%s parts of %s', x.items, p_calls)
        WHEN jsonb_array_length(p_parts) = x.items AND p_parts <> p_progress -> 'provider_message_ids'
            THEN 'a part was sent twice'
    END
    FROM (
        SELECT jsonb_array_length(p_progress -> 'sent_items') AS items,
               jsonb_array_length(p_progress -> 'provider_message_ids') AS ids
    ) AS x
$$;
