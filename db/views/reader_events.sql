-- reader_events: the reader's audit log. A payload_ref is only a name: reading the payload takes autopost_payloads.
CREATE OR REPLACE VIEW reader_events WITH (security_barrier) AS
SELECT e.workspace_id, e.id, e.ts, e.action, e.result, e.delivery_id, e.message_id, e.channel_id, e.attempt, e.error,
       e.payload_ref, e.meta, e.seq
FROM events e
WHERE e.workspace_id IN (SELECT reader_workspaces());
