-- events_are_strict() -> whether events have foreign keys (db/strict/on.sql), so rows they refer to cannot be deleted
CREATE OR REPLACE FUNCTION events_are_strict()
RETURNS boolean
LANGUAGE sql
STABLE
AS $$
    SELECT EXISTS (
        SELECT 1
        FROM pg_constraint k
        WHERE k.conrelid = 'public.events'::regclass
          AND k.contype = 'f'
    )
$$;
