-- schema_version() -> the number of this schema, raised by each migration that services need
--
-- A service calls this before it starts: it waits while the schema is older than the one that it was made for.
CREATE OR REPLACE FUNCTION schema_version()
RETURNS int
LANGUAGE sql
IMMUTABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT 1
$$;
