-- is_twin(status, sent_at, dedup_ttl_hours, now) -> whether a delivery suppresses another one with its content
--
-- A delivery of the same content to the same channel is a twin while it waits or is in flight, and after it was sent
-- for the dedup window of the channel. The planner inlines the body, so each query keeps its plan.
--
-- sent_at      coalesce(sent_at, updated_at) of the delivery
CREATE OR REPLACE FUNCTION is_twin(
    p_status delivery_status,
    p_sent_at timestamptz,
    p_dedup_ttl_hours int,
    p_now timestamptz
)
RETURNS boolean
LANGUAGE sql
STABLE PARALLEL SAFE
AS $$
    SELECT p_status IN ('queued', 'claimed', 'sending', 'retry')
        OR (p_status = 'sent' AND p_sent_at >= p_now - dedup_window(p_dedup_ttl_hours))
$$;
