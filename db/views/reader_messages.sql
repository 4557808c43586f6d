-- reader_messages: the reader's posts, normalised, each content once.
CREATE OR REPLACE VIEW reader_messages WITH (security_barrier) AS
SELECT m.workspace_id, m.message_id, m.hash_version, m.content_hash, m.payload, m.tags, m.source_ref,
       m.first_seen_trace_id, m.first_ingest_run_id, m.last_seen_at, m.last_ingest_run_id, m.seen_count, m.created_at
FROM messages m
WHERE m.workspace_id IN (SELECT reader_workspaces());
