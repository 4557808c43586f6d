-- condition_provider_waits(longer_than)
-- -> the workspaces with a token or a channel that a platform makes wait for longer
--
-- A platform may ask for any wait; it gets a day at most (see retry_delay). found: how many rate groups and channels
-- wait for longer than that from now on, and longer than their own rate requires. causes: those that wait longest.
CREATE OR REPLACE FUNCTION condition_provider_waits(p_longer_than interval)
RETURNS TABLE (workspace_id uuid, found bigint, since timestamptz, causes jsonb)
LANGUAGE sql
STABLE
AS $$
    SELECT g.workspace_id, count(*), NULL::timestamptz,
           jsonb_path_query_array(
               jsonb_agg(jsonb_strip_nulls(jsonb_build_object(
                             'name', g.name, 'code', 'until ' || to_char(g.until AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI'),
                             'id', g.channel_id))
                         ORDER BY g.until DESC, g.name), '$[0 to 4]')
    FROM (
        SELECT l.workspace_id, l.platform || ' ' || l.rate_group AS name, l.next_allowed_at AS until, l.rate_rps,
               NULL::uuid AS channel_id
        FROM platform_limits l
        UNION ALL
        SELECT c.workspace_id, coalesce(c.title, c.platform || ' ' || c.channel_id), c.next_allowed_at, c.rate_rps,
               c.channel_id
        FROM channels c
    ) AS g
    JOIN workspaces w
      ON w.workspace_id = g.workspace_id
     AND w.status <> 'disabled'
    WHERE g.until > clock_timestamp() + p_longer_than
      AND g.until > clock_timestamp() + rate_step(g.rate_rps)
      AND isfinite(g.until)
    GROUP BY g.workspace_id
$$;
