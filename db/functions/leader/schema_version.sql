-- schema_version() -> the number of this schema, raised by each migration that services need
--
-- What a service asks before it begins: it waits while the schema is older than the one that it was made for.
CREATE OR REPLACE FUNCTION schema_version()
RETURNS int
LANGUAGE sql
IMMUTABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT 1
$$;
