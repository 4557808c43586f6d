-- condition_bot_webhook(silent_for)
-- -> the workspaces whose provider does not send the updates of their bot, and none came for so long
--
-- The bot service asks the provider every few minutes (note_webhooks). A webhook that fails for hours is unsubscribed.
-- A chat with an update has a minute that began then or in the minute before (note_bot_update).
CREATE OR REPLACE FUNCTION condition_bot_webhook(p_silent_for interval)
RETURNS TABLE (workspace_id uuid, found bigint, since timestamptz, causes jsonb)
LANGUAGE sql
STABLE
AS $$
    SELECT s.workspace_id, 1::bigint, s.webhook_lost_at,
           jsonb_build_array(jsonb_build_object('name', 'webhook', 'code', 'not_subscribed', 'count', 1))
    FROM bot_settings s
    JOIN workspaces w
      ON w.workspace_id = s.workspace_id
     AND w.status = 'active'
    WHERE p_silent_for IS NOT NULL
      AND s.enabled
      AND s.webhook_lost_at IS NOT NULL
      AND NOT EXISTS (
          SELECT 1
          FROM bot_chats c
          WHERE c.workspace_id = s.workspace_id
            AND c.changed_at > (SELECT clock_timestamp() - p_silent_for)
            AND c.minute_started_at > (SELECT clock_timestamp() - p_silent_for - interval '1 minute')
      )
$$;
