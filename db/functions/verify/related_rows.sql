-- related_rows(workspace_id, after, last) -> what other tables have about the deliveries of a range of keys
--
-- A part of verify_deliveries, and of its statement: all rows are as of one moment.
--
-- is_queued, is_taken, queued_for   its row in delivery_queue, whether that is claimed, and its channel there
-- dead_letters, skipped_at          its row in dead_letters: the status there, and when an operator skipped it
-- has_message, has_channel, has_rendering   what the delivery refers to is there; no rendering is fine too
-- calls                             provider calls of its rendering
CREATE OR REPLACE FUNCTION related_rows(p_workspace_id uuid, p_after uuid, p_last uuid)
RETURNS TABLE (
    delivery_id uuid,
    is_queued boolean,
    is_taken boolean,
    queued_for uuid,
    dead_letters delivery_status,
    skipped_at timestamptz,
    has_message boolean,
    has_channel boolean,
    has_rendering boolean,
    calls int
)
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
SET enable_seqscan = off
AS $$
    -- Each table is read by its range of keys at once: single probes would read an emptied queue over and over.
    WITH page AS MATERIALIZED (
        SELECT d.delivery_id, d.message_id, d.channel_id, d.rendering_id
        FROM deliveries d
        WHERE d.workspace_id = p_workspace_id
          AND d.delivery_id > p_after
          AND d.delivery_id <= p_last
    ), queued AS MATERIALIZED (
        SELECT q.delivery_id, q.claim_token, q.channel_id
        FROM delivery_queue q
        WHERE q.workspace_id = p_workspace_id
          AND q.delivery_id > p_after
          AND q.delivery_id <= p_last
    ), lost AS MATERIALIZED (
        SELECT g.delivery_id, g.status, g.skipped_at
        FROM dead_letters g
        WHERE g.workspace_id = p_workspace_id
          AND g.delivery_id > p_after
          AND g.delivery_id <= p_last
    )
    SELECT p.delivery_id, q.delivery_id IS NOT NULL, q.claim_token IS NOT NULL, q.channel_id, g.status, g.skipped_at,
           m.there IS NOT NULL, c.there IS NOT NULL, p.rendering_id IS NULL OR r.calls IS NOT NULL, r.calls
    FROM page p
    LEFT JOIN queued q USING (delivery_id)
    LEFT JOIN lost g USING (delivery_id)
    LEFT JOIN LATERAL (
        SELECT true AS there
        FROM messages m
        WHERE m.workspace_id = p_workspace_id
          AND m.message_id = p.message_id
        LIMIT 1
    ) AS m ON true
    LEFT JOIN LATERAL (
        SELECT true AS there
        FROM channels c
        WHERE c.workspace_id = p_workspace_id
          AND c.channel_id = p.channel_id
        LIMIT 1
    ) AS c ON true
    LEFT JOIN LATERAL (
        SELECT r.calls
        FROM renderings r
        WHERE r.workspace_id = p_workspace_id
          AND r.rendering_id = p.rendering_id
          AND r.message_id = p.message_id
        LIMIT 1
    ) AS r ON true
$$;
