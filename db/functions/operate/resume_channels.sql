-- resume_channels(workspace_id, channel_id | rate_group, operator, reason, platform) -> one verdict per channel
--
-- Ends any pause and applies the channel's catch-up policy to the backlog. The error streak stays: the next failure of
-- the channel adds to it.
-- Verdicts, events, locks and errors: see open_channels.
CREATE OR REPLACE FUNCTION resume_channels(
    p_workspace_id uuid,
    p_channel_id uuid,
    p_rate_group text,
    p_operator text,
    p_reason text,
    p_platform text DEFAULT NULL
)
RETURNS TABLE (channel_id uuid, verdict text, dropped bigint)
LANGUAGE sql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT *
    FROM open_channels(p_workspace_id, p_channel_id, p_rate_group, p_operator, p_reason, false, p_platform)
$$;
