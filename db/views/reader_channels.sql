-- reader_channels: the reader's channels, without the place of their credentials.
CREATE OR REPLACE VIEW reader_channels WITH (security_barrier) AS
SELECT c.workspace_id, c.channel_id, c.platform, c.target_id, c.rate_group, c.enabled, c.title, c.send_mode, c.rate_rps,
       c.max_parallel, c.next_allowed_at, c.paused_until, c.timezone, c.window_mode, c.posting_window, c.dedup_ttl_hours,
       c.error_streak, c.settings, c.tags, c.route_filter, c.template_ref, c.on_ambiguous, c.catch_up, c.created_at,
       c.updated_at, c.max_attempts
FROM channels c
WHERE c.workspace_id IN (SELECT reader_workspaces());
