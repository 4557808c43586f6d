-- reader_runs: the reader's requests and pulls, with their counts.
CREATE OR REPLACE VIEW reader_runs WITH (security_barrier) AS
SELECT r.workspace_id, r.run_id, r.kind, r.endpoint_id, r.trace_id, r.started_at, r.finished_at, r.stats_json
FROM ingest_runs r
WHERE r.workspace_id IN (SELECT reader_workspaces());
