-- routing_facts(workspace_id) -> what the warnings of a post depend on: the tags that filters name, and closed windows
--
-- filter_tags  every tag in the route_filter of an enabled channel
-- closed       how many enabled channels have a posting window that is closed now
CREATE OR REPLACE FUNCTION routing_facts(p_workspace_id uuid)
RETURNS TABLE (filter_tags text[], closed int)
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT ARRAY(
               SELECT DISTINCT t.tag
               FROM channels c
               CROSS JOIN LATERAL jsonb_each(c.route_filter) AS f (name, tags)
               CROSS JOIN LATERAL jsonb_array_elements_text(f.tags) AS t (tag)
               WHERE c.workspace_id = p_workspace_id
                 AND c.enabled
                 AND c.route_filter IS NOT NULL
           ),
           (
               SELECT count(*)
               FROM (SELECT clock_timestamp() AS now) AS clock
               CROSS JOIN channels c
               WHERE c.workspace_id = p_workspace_id
                 AND c.enabled
                 AND c.window_mode = 'windowed'
                 AND window_opens_at(c.posting_window, c.timezone, clock.now) > clock.now
           )::int
$$;
