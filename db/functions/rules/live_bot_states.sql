-- live_bot_states(workspace_id) -> in how many chats each state waits for the customer now
CREATE OR REPLACE FUNCTION live_bot_states(p_workspace_id uuid)
RETURNS TABLE (state text, chats bigint)
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT s.state, count(*)
    FROM bot_state s
    WHERE s.workspace_id = p_workspace_id
      AND s.expires_at >= clock_timestamp()
    GROUP BY s.state
    ORDER BY s.state
$$;
