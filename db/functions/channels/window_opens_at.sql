-- window_opens_at(posting_window, timezone, at) -> the first moment, not before `at`, at which a post may go out
--
-- posting_window   {"mon": [["09:00", "21:00"]], …, "holidays": ["2026-01-01"]}; ["22:00", "02:00"] runs over
--                  midnight and belongs to the day it starts on; a holiday opens nothing
-- Returns          `at` itself while a window is open, 'infinity' when none opens within thirteen months
--
-- Times are the channel's wall clock. Where the clock jumps forward, a time inside the gap counts from the other side
-- of it, and a window with no time left is omitted. Where it falls back, a window lasts from the first occurrence of
-- its start to the last of its end.
CREATE OR REPLACE FUNCTION window_opens_at(p_window jsonb, p_timezone text, p_at timestamptz)
RETURNS timestamptz
LANGUAGE sql
STABLE PARALLEL SAFE
AS $$
    SELECT coalesce((
        SELECT opening.at
        FROM (SELECT coalesce(p_timezone, 'UTC') AS name) AS zone
        CROSS JOIN generate_series(-1, 400) AS n
        CROSS JOIN LATERAL (SELECT (p_at AT TIME ZONE zone.name)::date + n AS day) AS d
        CROSS JOIN LATERAL (
            SELECT min(greatest(opens, p_at)) AS at
            FROM jsonb_array_elements(p_window -> lower(to_char(d.day, 'FMdy'))) AS w
            CROSS JOIN LATERAL (
                SELECT d.day + (w ->> 0)::time AS start_wall,
                       d.day + (w ->> 1)::time + CASE WHEN (w ->> 1)::time <= (w ->> 0)::time
                                                      THEN interval '1 day' ELSE interval '0' END AS end_wall
            ) AS wall
            CROSS JOIN LATERAL (
                -- For a time that occurs twice Postgres takes the second.
                SELECT start_wall AT TIME ZONE zone.name AS second_start, end_wall AT TIME ZONE zone.name AS closes
            ) AS span
            CROSS JOIN LATERAL (
                SELECT CASE
                    WHEN (second_start - interval '1 hour') AT TIME ZONE zone.name = start_wall
                        THEN second_start - interval '1 hour'
                    WHEN (second_start - interval '30 minutes') AT TIME ZONE zone.name = start_wall
                        THEN second_start - interval '30 minutes'
                    ELSE second_start
                END
            ) AS first_start (opens)
            WHERE closes > greatest(opens, p_at)
        ) AS opening
        WHERE isfinite(p_at)
          AND NOT coalesce(p_window -> 'holidays', '[]') ? to_char(d.day, 'YYYY-MM-DD')
          AND opening.at IS NOT NULL
        ORDER BY n
        LIMIT 1
    ), 'infinity')
$$;
