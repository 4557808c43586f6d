-- enable_channels(workspace_id, channel_id | rate_group, operator, reason, platform) -> one verdict per channel
--
-- Ends a disable and a pause, and resets the error streak. Applies the channel's catch-up policy to the backlog.
-- Verdicts, events, locks and errors: see open_channels.
CREATE OR REPLACE FUNCTION enable_channels(
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
    FROM open_channels(p_workspace_id, p_channel_id, p_rate_group, p_operator, p_reason, true, p_platform)
$$;
