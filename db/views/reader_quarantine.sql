-- reader_quarantine: quarantine, limited to the reader's workspaces.
CREATE OR REPLACE VIEW reader_quarantine WITH (security_barrier) AS
SELECT q.workspace_id, q.channel_id, q.platform, q.rate_group, q.title, q.state, q.since, q.until, q.reason, q.operator,
       q.catch_up, q.waiting, q.held, q.oldest_at, q.last_seen_at
FROM quarantine q
WHERE q.workspace_id IN (SELECT reader_workspaces());
