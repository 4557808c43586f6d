-- The foreign keys of what every post writes are checked once per statement: see has_workspace, has_endpoint and
-- refers_to_posts.
ALTER TABLE messages
    -- squawk-ignore ban-drop-constraint
    DROP CONSTRAINT messages_workspace_id_fkey;
ALTER TABLE ingest_runs
    -- squawk-ignore ban-drop-constraint
    DROP CONSTRAINT ingest_runs_workspace_id_fkey;
ALTER TABLE ingress_receipts
    -- squawk-ignore ban-drop-constraint
    DROP CONSTRAINT ingress_receipts_workspace_id_endpoint_id_fkey;
