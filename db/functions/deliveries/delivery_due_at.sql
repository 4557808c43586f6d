-- delivery_due_at(status, not_before, scheduled_for, next_retry_at) -> when a waiting delivery may be claimed
CREATE OR REPLACE FUNCTION delivery_due_at(
    p_status delivery_status,
    p_not_before timestamptz,
    p_scheduled_for timestamptz,
    p_next_retry_at timestamptz
)
RETURNS timestamptz
LANGUAGE sql
IMMUTABLE PARALLEL SAFE
AS $$
    SELECT greatest(p_not_before, p_scheduled_for, CASE WHEN p_status = 'retry' THEN p_next_retry_at END)
$$;
