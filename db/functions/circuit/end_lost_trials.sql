-- end_lost_trials(now)
--
-- Half circuits whose trial is with nobody any more (its lease expired, or it was taken back from its worker) are open
-- again: an expired lease says nothing good about the platform.
--
-- Changes   half -> open
-- Locks     platform_limits SKIP LOCKED: a commit that ends the trial right now wins
CREATE OR REPLACE FUNCTION end_lost_trials(p_now timestamptz)
RETURNS void
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
DECLARE
    _places tid[] := ARRAY(
        SELECT g.ctid
        FROM platform_limits g
        WHERE g.circuit = 'half'
          AND g.trial IS NOT NULL
        ORDER BY g.workspace_id, g.platform, g.rate_group
        FOR UPDATE SKIP LOCKED
    );
BEGIN
    -- A new statement: it sees what was committed before the locks were granted.
    PERFORM end_trial(g.workspace_id, g.platform, g.rate_group, '{"code": "lease_expired"}')
    FROM platform_limits g
    WHERE g.ctid = ANY (_places)
      AND NOT EXISTS (
          SELECT 1
          FROM deliveries d
          WHERE d.workspace_id = g.workspace_id
            AND d.delivery_id = g.trial
            AND d.status = 'sending'
            AND d.sending_lease_until >= p_now
      )
      AND NOT EXISTS (
          SELECT 1
          FROM bot_outbox b
          JOIN bot_chats c
            ON c.workspace_id = b.workspace_id
           AND c.chat_id = b.chat_id
           AND c.lease_until >= p_now
          WHERE b.workspace_id = g.workspace_id
            AND b.reply_id = g.trial
            AND b.slot_at IS NOT NULL
      );
END $$;
