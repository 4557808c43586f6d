-- verify_size() -> about how many deliveries and events there are, by the planner's statistics: for a progress bar
CREATE OR REPLACE FUNCTION verify_size()
RETURNS TABLE (deliveries bigint, events bigint)
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT (SELECT greatest(c.reltuples, 0)::bigint FROM pg_class c WHERE c.oid = 'public.deliveries'::regclass),
           (SELECT coalesce(sum(greatest(c.reltuples, 0)), 0)::bigint
            FROM pg_inherits i
            JOIN pg_class c ON c.oid = i.inhrelid
            WHERE i.inhparent = 'public.events'::regclass)
$$;
