-- dedup_window(dedup_ttl_hours)
-- -> how long a channel refuses a content that was sent to it; a week by default
CREATE OR REPLACE FUNCTION dedup_window(p_dedup_ttl_hours int)
RETURNS interval
LANGUAGE sql
IMMUTABLE PARALLEL SAFE
AS $$
    SELECT make_interval(hours => coalesce(p_dedup_ttl_hours, 168))
$$;
