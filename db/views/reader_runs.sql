-- reader_runs: the requests and pulls of whoever reads, with their counts.
CREATE OR REPLACE VIEW reader_runs WITH (security_barrier) AS
SELECT r.workspace_id, r.run_id, r.kind, r.endpoint_id, r.trace_id, r.started_at, r.finished_at, r.stats_json
FROM ingest_runs r
WHERE r.workspace_id IN (SELECT reader_workspaces());
