-- utc_text(moment) -> RFC 3339 in UTC with microseconds, whatever the time zone of the session is
CREATE OR REPLACE FUNCTION utc_text(p_moment timestamptz)
RETURNS text
LANGUAGE sql
STABLE
AS $$
    SELECT to_char(p_moment AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
$$;
