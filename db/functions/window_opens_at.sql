-- window_opens_at(posting_window, timezone, at) -> the first moment, not before `at`, at which a post may go out
--
-- posting_window   {"mon": [["09:00", "21:00"]], …, "holidays": ["2026-01-01"]}; ["22:00", "02:00"] runs over
--                  midnight and belongs to the day it starts on; a holiday opens nothing
-- Returns          `at` itself while a window is open, 'infinity' when none opens within thirteen months
--
-- Times are the channel's wall clock: where the clock jumps forward a window inside the gap opens after it, and
-- where it falls back the window lasts from the first of its start to the last of its end.
CREATE OR REPLACE FUNCTION window_opens_at(p_window jsonb, p_timezone text, p_at timestamptz)
RETURNS timestamptz
LANGUAGE sql
STABLE PARALLEL SAFE
AS $$
    WITH zone AS (
        SELECT coalesce(p_timezone, 'UTC') AS name
    ), days AS (
        SELECT (day)::date AS day, lower(to_char(day, 'FMdy')) AS weekday
        FROM zone,
             generate_series((p_at AT TIME ZONE zone.name)::date - 1,
                             (p_at AT TIME ZONE zone.name)::date + 400,
                             interval '1 day') AS day
        WHERE NOT coalesce(p_window -> 'holidays', '[]') ? to_char(day, 'YYYY-MM-DD')
    ), spans AS (
        SELECT (d.day + (w ->> 0)::time) AT TIME ZONE zone.name AS opens,
               (d.day + (w ->> 1)::time
                   + CASE WHEN (w ->> 1)::time <= (w ->> 0)::time THEN interval '1 day' ELSE interval '0' END)
                   AT TIME ZONE zone.name AS closes
        FROM zone, days d
        CROSS JOIN LATERAL jsonb_array_elements(coalesce(p_window -> d.weekday, '[]')) AS w
    )
    SELECT coalesce(min(greatest(opens, p_at)), 'infinity')
    FROM spans
    WHERE closes > p_at
$$;
