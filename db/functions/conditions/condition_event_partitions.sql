-- condition_event_partitions(at_least) -> whether the partitions of the log end sooner than that
--
-- found: for how many whole days partitions exist. Concerns the installation, not a workspace.
CREATE OR REPLACE FUNCTION condition_event_partitions(p_at_least interval)
RETURNS TABLE (workspace_id uuid, found bigint, since timestamptz, causes jsonb)
LANGUAGE sql
STABLE
AS $$
    SELECT '00000000-0000-0000-0000-000000000000'::uuid,
           greatest(floor(extract(epoch FROM p.ahead) / 86400), 0)::bigint, NULL::timestamptz, '[]'::jsonb
    FROM (SELECT partitions_ahead() AS ahead) AS p
    WHERE p.ahead < p_at_least
$$;
