-- why_sending(workspace_id, channel_id, flying) -> what is sent in a channel now, since when and until when
--
-- flying        how many deliveries it has in flight; the twenty oldest are named
-- since, until  the earliest start and the earliest end of a lease
CREATE OR REPLACE FUNCTION why_sending(
    p_workspace_id uuid,
    p_channel_id uuid,
    p_flying int,
    OUT since timestamptz,
    OUT until timestamptz,
    OUT deliveries jsonb
)
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT min(d.sending_started_at), min(d.sending_lease_until),
           jsonb_agg(d.delivery_id ORDER BY d.sending_lease_until)
    FROM (
        SELECT q.delivery_id
        FROM delivery_queue q
        WHERE q.workspace_id = p_workspace_id
          AND q.channel_id = p_channel_id
          AND NOT q.asleep
          AND q.claim_token IS NOT NULL
        ORDER BY q.sort_at
        LIMIT least(p_flying, 20) -- sends in flight are the oldest: no need to read the backlog
    ) AS q
    JOIN deliveries d
      ON d.workspace_id = p_workspace_id
     AND d.delivery_id = q.delivery_id
     AND d.status = 'sending'
$$;
