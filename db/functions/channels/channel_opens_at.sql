-- channel_opens_at(channel, at) -> when the channel's own gates let a post through: `at` if they are open then
--
-- disabled -> never; paused -> when the pause ends; windowed -> inside a window. Rates are not considered.
CREATE OR REPLACE FUNCTION channel_opens_at(p_channel channels, p_at timestamptz)
RETURNS timestamptz
LANGUAGE sql
STABLE PARALLEL SAFE
AS $$
    SELECT CASE
        WHEN NOT p_channel.enabled THEN 'infinity'
        WHEN p_channel.window_mode = 'windowed'
            THEN window_opens_at(p_channel.posting_window, p_channel.timezone,
                                 greatest(p_channel.paused_until, p_at))
        ELSE greatest(p_channel.paused_until, p_at)
    END
$$;
