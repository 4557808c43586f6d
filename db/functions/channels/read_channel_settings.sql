-- read_channel_settings(workspace_id)
-- -> the settings of each channel, by platform and title; for `autopost channel check`
CREATE OR REPLACE FUNCTION read_channel_settings(p_workspace_id uuid)
RETURNS TABLE (channel_id uuid, platform text, title text, settings jsonb)
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT c.channel_id, c.platform, c.title, c.settings
    FROM channels c
    WHERE c.workspace_id = p_workspace_id
    ORDER BY c.platform, c.title, c.channel_id
$$;
