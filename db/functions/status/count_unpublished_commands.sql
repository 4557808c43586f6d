-- count_unpublished_commands() -> how many commands of the outbox are not in the stream
CREATE OR REPLACE FUNCTION count_unpublished_commands()
RETURNS bigint
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT count(*)
    FROM command_outbox c
    WHERE c.published_at IS NULL
$$;
