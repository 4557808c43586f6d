-- verify_channels(workspace_id, most) -> counters and due times of channels that disagree with their deliveries
--
-- What channel_drift finds: [{"kind": "in_flight" | "due" | "group", "channel_id", "events": what is true, "row"}].
-- recount(workspace_id) repairs all of them.
CREATE OR REPLACE FUNCTION verify_channels(p_workspace_id uuid, p_most int DEFAULT 100)
RETURNS TABLE (checked bigint, found bigint, differences jsonb)
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    WITH wrong AS MATERIALIZED (
        SELECT d.channel_id, w.kind, w.told, w.found
        FROM channel_drift(p_workspace_id) AS d
        CROSS JOIN LATERAL (
            SELECT 'in_flight' AS kind, d.sending::text AS told, d.counted::text AS found
            WHERE d.counted IS DISTINCT FROM d.sending
            UNION ALL
            SELECT 'due', d.due::text, d.due_was::text
            WHERE d.due IS NOT NULL
            UNION ALL
            SELECT 'group', NULL, NULL
            WHERE d.misplaced
        ) AS w
    )
    SELECT (SELECT count(*) FROM channels c WHERE c.workspace_id = p_workspace_id),
           (SELECT count(*) FROM wrong),
           coalesce((
               SELECT jsonb_agg(jsonb_build_object(
                   'kind', l.kind, 'channel_id', l.channel_id, 'events', l.told, 'row', l.found
               ) ORDER BY l.channel_id, l.kind)
               FROM (SELECT * FROM wrong w ORDER BY w.channel_id, w.kind LIMIT p_most) AS l
           ), '[]')
$$;
