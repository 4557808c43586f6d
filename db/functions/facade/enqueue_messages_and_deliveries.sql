-- enqueue_messages_and_deliveries(workspace_id, endpoint_id, kind, post, now, audit_deduped) -> the answer for the post
--
-- The name that the source documents use. It is enqueue_messages_and_deliveries_batch for one post: see there.
CREATE OR REPLACE FUNCTION enqueue_messages_and_deliveries(
    p_workspace_id uuid,
    p_endpoint_id uuid,
    p_kind text,
    p_post jsonb,
    p_now timestamptz DEFAULT NULL,
    p_audit_deduped boolean DEFAULT false
)
RETURNS jsonb
LANGUAGE sql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT enqueue_messages_and_deliveries_batch(
        p_workspace_id, p_endpoint_id, p_kind, jsonb_build_array(p_post), p_now, p_audit_deduped) -> 0
$$;
