-- render_profile(channel) -> all that compiling for this channel needs
--
-- Channels with the same profile_hash have the same. One row, as a table, so that the planner inlines it.
CREATE OR REPLACE FUNCTION render_profile(p_channel channels)
RETURNS TABLE (
    profile_hash text,
    platform text,
    send_mode text,
    settings jsonb,
    template_ref text,
    template_version int,
    template_body text,
    template_defaults jsonb,
    template_parse_mode text
)
LANGUAGE sql
STABLE
AS $$
    SELECT p_channel.profile_hash, p_channel.platform, p_channel.send_mode,
           p_channel.settings - 'message_thread_id', p_channel.template_ref, t.version, t.body,
           coalesce(t.defaults, '{}'), t.parse_mode
    FROM (SELECT) AS one
    LEFT JOIN LATERAL (
        SELECT t.version, t.body, t.defaults, t.parse_mode
        FROM templates t
        WHERE t.workspace_id = p_channel.workspace_id
          AND t.template_id = p_channel.template_ref
        ORDER BY t.version DESC
        LIMIT 1
    ) AS t ON true
$$;
