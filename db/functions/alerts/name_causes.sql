-- name_causes(workspace_id, delivery_ids) -> where these deliveries failed and with which code, for an alert
--
-- [{"name", "code", "count", "id"}], five at most, the most frequent first: the channel's title, the code of the last
-- error, and one delivery as an example. It contains no text from a provider.
--
-- Cost     one probe per delivery: pass the first hundred, not all of them
CREATE OR REPLACE FUNCTION name_causes(p_workspace_id uuid, p_delivery_ids uuid[])
RETURNS jsonb
LANGUAGE sql
STABLE
AS $$
    SELECT coalesce(jsonb_agg(jsonb_strip_nulls(jsonb_build_object(
               'name', f.name, 'code', f.code, 'count', f.deliveries, 'id', f.delivery_id))
               ORDER BY f.deliveries DESC, f.name, f.code), '[]')
    FROM (
        SELECT coalesce(c.title, c.platform || ' ' || c.channel_id) AS name, d.code, count(*) AS deliveries,
               (array_agg(d.delivery_id ORDER BY d.created_at, d.delivery_id))[1] AS delivery_id
        FROM unnest(p_delivery_ids) AS asked (delivery_id)
        CROSS JOIN LATERAL (
            SELECT d.channel_id, d.delivery_id, d.created_at, d.last_error ->> 'code' AS code
            FROM deliveries d
            WHERE d.workspace_id = p_workspace_id
              AND d.delivery_id = asked.delivery_id
            LIMIT 1
        ) AS d
        JOIN channels c
          ON c.workspace_id = p_workspace_id
         AND c.channel_id = d.channel_id
        GROUP BY 1, 2
        ORDER BY 3 DESC, 1, 2
        LIMIT 5
    ) AS f
$$;
