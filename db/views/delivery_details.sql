-- delivery_details: a delivery with everything the contract names on it, including the rendered text.
CREATE OR REPLACE VIEW delivery_details AS
SELECT d.workspace_id, d.delivery_id, d.message_id, d.channel_id, d.hash_version, d.content_hash, d.not_before,
       d.scheduled_for, d.status, d.attempt, d.max_attempts, d.policy, d.next_retry_at, d.hold_reason,
       d.provider_message_id, d.sent_at, d.last_error, r.rendered_text, d.render_meta, r.plan, d.plan_hash,
       d.template_version, d.trace_id, d.traceparent, d.enqueue_batch_id, d.claimed_at, d.claim_token,
       d.sending_started_at, d.sending_lease_until, d.slot_at, d.created_at, d.updated_at,
       c.platform, c.target_id, c.title AS channel_title
FROM deliveries d
JOIN channels c
  ON c.workspace_id = d.workspace_id
 AND c.channel_id = d.channel_id
LEFT JOIN renderings r
  ON r.workspace_id = d.workspace_id
 AND r.rendering_id = d.rendering_id;
