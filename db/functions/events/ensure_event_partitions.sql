-- ensure_event_partitions(ahead) -> how many partitions were created
--
-- One partition of events per week (Monday, UTC), from this week to `ahead` from now. No default partition:
-- it would stop partitions from being detached concurrently.
--
-- Locks     an advisory lock, so that two callers do not create the same partition
CREATE OR REPLACE FUNCTION ensure_event_partitions(p_ahead interval DEFAULT '30 days')
RETURNS int
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
DECLARE
    _week timestamp;
    _name text;
    _created int := 0;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('ensure_event_partitions', 0));
    FOR _week IN
        SELECT generate_series(
            date_trunc('week', (clock_timestamp() AT TIME ZONE 'UTC') - interval '7 days'),
            (clock_timestamp() AT TIME ZONE 'UTC') + p_ahead,
            interval '7 days'
        )
    LOOP
        _name := 'events_' || to_char(_week, 'IYYY"w"IW');
        CONTINUE WHEN to_regclass('public.' || _name) IS NOT NULL;
        EXECUTE format(
            'CREATE TABLE public.%I PARTITION OF public.events FOR VALUES FROM (%L) TO (%L)',
            _name, _week AT TIME ZONE 'UTC', (_week + interval '7 days') AT TIME ZONE 'UTC'
        );
        EXECUTE format('ALTER TABLE public.%I ENABLE ROW LEVEL SECURITY', _name);
        -- The row triggers are inherited, this one is not.
        EXECUTE format(
            'CREATE TRIGGER events_are_not_truncated BEFORE TRUNCATE ON public.%I '
            'FOR EACH STATEMENT EXECUTE FUNCTION events_are_append_only()', _name
        );
        _created := _created + 1;
    END LOOP;
    RETURN _created;
END $$;
