-- reader_deliveries: the reader's deliveries, as in delivery_details, without claim tokens.
CREATE OR REPLACE VIEW reader_deliveries WITH (security_barrier) AS
SELECT d.workspace_id, d.delivery_id, d.message_id, d.channel_id, d.platform, d.target_id, d.channel_title, d.status,
       d.attempt, d.max_attempts, d.not_before, d.scheduled_for, d.next_retry_at, d.hold_reason, d.provider_message_id,
       d.sent_at, d.last_error, d.rendered_text, d.render_meta, d.plan, d.plan_hash, d.template_version, d.hash_version,
       d.content_hash, d.trace_id, d.enqueue_batch_id, d.created_at, d.updated_at
FROM delivery_details d
WHERE d.workspace_id IN (SELECT reader_workspaces());
