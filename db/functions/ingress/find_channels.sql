-- find_channels(workspace_id, names, channel_tags) -> what the names in the routing of a post mean
--
-- A name is the id of a channel, its address on the platform, or its title in upper or lower case. An id goes before an
-- address, an address before a title. Disabled channels are found too.
--
-- Returns      {"channels": [[{"channel_id", "title", "platform", "target_id"}, …], …],   per name, in order
--               "unknown_tags": [tag, …],                      that no channel has
--               "titles": [title, …], "tags": [tag, …]}        to compare with, when a name or a tag is unknown
CREATE OR REPLACE FUNCTION find_channels(p_workspace_id uuid, p_names text[], p_channel_tags text[])
RETURNS jsonb
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    WITH channel AS MATERIALIZED (
        SELECT c.channel_id, c.title, c.platform, c.target_id, lowercase(btrim(c.title)) AS lower_title, c.tags
        FROM channels c
        WHERE c.workspace_id = p_workspace_id
    ), name AS MATERIALIZED (
        SELECT n.place, btrim(n.name) AS name, lowercase(btrim(n.name)) AS lower_name
        FROM unnest(p_names) WITH ORDINALITY AS n (name, place)
    ), match AS (
        SELECT n.place, 1 AS rank, c.* FROM name n JOIN channel c ON c.channel_id::text = n.lower_name
        UNION ALL
        SELECT n.place, 2, c.* FROM name n JOIN channel c ON c.target_id = n.name
        UNION ALL
        SELECT n.place, 3, c.* FROM name n JOIN channel c ON c.lower_title = n.lower_name
    ), named AS MATERIALIZED (
        SELECT n.place, coalesce(jsonb_agg(jsonb_build_object(
                   'channel_id', m.channel_id, 'title', m.title, 'platform', m.platform, 'target_id', m.target_id)
                   ORDER BY m.platform, m.target_id) FILTER (WHERE m.first = 1), '[]') AS found
        FROM name n
        LEFT JOIN (SELECT m.*, rank() OVER (PARTITION BY m.place ORDER BY m.rank) AS first FROM match m) AS m USING (place)
        GROUP BY n.place
    ), tag AS MATERIALIZED (
        SELECT ARRAY(SELECT t.tag FROM unnest(p_channel_tags) AS t (tag)
                     WHERE NOT EXISTS (SELECT 1 FROM channel c WHERE t.tag = ANY (c.tags))) AS unknown
    )
    SELECT jsonb_build_object(
        'channels', coalesce((SELECT jsonb_agg(n.found ORDER BY n.place) FROM named n), '[]'),
        'unknown_tags', to_jsonb(t.unknown),
        'titles', CASE WHEN EXISTS (SELECT 1 FROM named n WHERE n.found = '[]') THEN
            (SELECT coalesce(jsonb_agg(c.title), '[]')
             FROM (SELECT DISTINCT c.title FROM channel c WHERE c.title IS NOT NULL ORDER BY c.title LIMIT 1000) AS c)
            ELSE '[]' END,
        'tags', CASE WHEN t.unknown <> '{}' THEN
            (SELECT coalesce(jsonb_agg(g.tag), '[]')
             FROM (SELECT DISTINCT unnest(c.tags) AS tag FROM channel c ORDER BY tag LIMIT 1000) AS g)
            ELSE '[]' END)
    FROM tag t
$$;
