-- note_webhooks(workspace_id, subscriptions) -> whether the provider sends updates where they have to come to
--
-- subscriptions   as the provider said: [{"url", "update_types"}]. They have to name webhook_url, or, where no
--                 webhook_url is known, anything at all
-- Locks           bot_settings by key
CREATE OR REPLACE FUNCTION note_webhooks(p_workspace_id uuid, p_subscriptions jsonb)
RETURNS boolean
LANGUAGE sql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    UPDATE bot_settings s
    SET subscriptions = p_subscriptions,
        subscriptions_read_at = clock_timestamp(),
        webhook_lost_at = CASE
            WHEN s.webhook_url IS NULL AND p_subscriptions <> '[]' THEN NULL
            WHEN p_subscriptions @> jsonb_build_array(jsonb_build_object('url', s.webhook_url)) THEN NULL
            ELSE coalesce(s.webhook_lost_at, clock_timestamp())
        END
    WHERE s.workspace_id = p_workspace_id
    RETURNING s.webhook_lost_at IS NULL
$$;
