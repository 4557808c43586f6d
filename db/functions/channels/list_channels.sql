-- list_channels(workspace_id) -> the channels of a workspace as configured, by platform and title
--
-- auth_ref     the credential in use: of channel_auth if it has a row, else of the channel
-- Their current state (state, reason, until, waiting) is in snapshot(workspace_id) -> channels.
CREATE OR REPLACE FUNCTION list_channels(p_workspace_id uuid)
RETURNS TABLE (
    channel_id uuid,
    platform text,
    title text,
    target_id text,
    rate_group text,
    auth_ref text
)
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT c.channel_id, c.platform, c.title, c.target_id, c.rate_group, coalesce(a.auth_ref, c.auth_ref)
    FROM channels c
    LEFT JOIN channel_auth a
      ON a.workspace_id = c.workspace_id
     AND a.channel_id = c.channel_id
    WHERE c.workspace_id = p_workspace_id
    ORDER BY c.platform, c.title, c.channel_id
$$;
