-- cancel_verdict(deliveries) -> what a cancellation did as a whole; deliveries: [{"verdict"}]
--
-- The first of cancelled, too_late, partly_sent, shared that any has, else already.
CREATE OR REPLACE FUNCTION cancel_verdict(p_deliveries jsonb)
RETURNS text
LANGUAGE sql
IMMUTABLE
AS $$
    SELECT CASE
        WHEN p_deliveries @> '[{"verdict": "cancelled"}]' OR p_deliveries @> '[{"verdict": "perhaps_sent"}]'
            THEN 'cancelled'
        WHEN p_deliveries @> '[{"verdict": "too_late"}]' THEN 'too_late'
        WHEN p_deliveries @> '[{"verdict": "partly_sent"}]' THEN 'partly_sent'
        WHEN p_deliveries @> '[{"verdict": "shared"}]' THEN 'shared'
        ELSE 'already'
    END
$$;
