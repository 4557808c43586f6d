-- condition_relay_lag(longer_than) -> whether the audit stream lags by more than that
--
-- found: how many events wait. causes: the transaction that delays them, if any. Concerns the installation.
CREATE OR REPLACE FUNCTION condition_relay_lag(p_longer_than interval)
RETURNS TABLE (workspace_id uuid, found bigint, since timestamptz, causes jsonb)
LANGUAGE sql
STABLE
AS $$
    SELECT '00000000-0000-0000-0000-000000000000'::uuid, l.events,
           clock_timestamp() - make_interval(secs => l.seconds),
           CASE WHEN l.blocking_seconds IS NULL THEN '[]'::jsonb ELSE jsonb_build_array(jsonb_strip_nulls(
               jsonb_build_object(
                   'name', concat_ws(' ', 'held back by', nullif(l.blocking_application, ''), 'pid ' || l.blocking_pid,
                                     'open for', round(l.blocking_seconds) || ' s'),
                   'code', l.blocking_state))) END
    FROM relay_lag() AS l
    WHERE make_interval(secs => l.seconds) > p_longer_than
$$;
