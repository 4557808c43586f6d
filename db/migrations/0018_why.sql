-- What `autopost why` asks for and nothing told so far: since when a workspace is what it is, and what a trace or a
-- source_ref belongs to.

-- Null: since before anybody noted it. Kept by the trigger of workspace_turned.
ALTER TABLE workspaces ADD COLUMN status_since timestamptz;
ALTER TABLE workspaces ALTER COLUMN status_since SET DEFAULT now();

CREATE INDEX messages_by_source_ref ON messages (source_ref) WHERE source_ref IS NOT NULL;
CREATE INDEX ingest_runs_by_trace ON ingest_runs (trace_id) WHERE trace_id IS NOT NULL;
CREATE INDEX staged_posts_by_run ON staged_posts (run_id);
