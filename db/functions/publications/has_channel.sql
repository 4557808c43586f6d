-- has_channel(workspace_id, channel_id) -> whether the workspace has this channel, enabled or not
CREATE OR REPLACE FUNCTION has_channel(p_workspace_id uuid, p_channel_id uuid)
RETURNS boolean
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT EXISTS (
        SELECT 1
        FROM channels c
        WHERE c.workspace_id = p_workspace_id
          AND c.channel_id = p_channel_id
    )
$$;
