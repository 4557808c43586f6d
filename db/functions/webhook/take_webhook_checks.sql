-- take_webhook_checks(older, limit) -> bots whose provider was not asked for so long where it sends their updates to
--
-- Whoever takes one asks the provider and calls note_webhooks. It is not given out again before it is that old again, so
-- of many replicas one asks.
--
-- Locks     bot_settings by key, SKIP LOCKED
CREATE OR REPLACE FUNCTION take_webhook_checks(p_older interval, p_limit int)
RETURNS TABLE (workspace_id uuid, provider text, auth_ref text)
LANGUAGE sql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    WITH due AS MATERIALIZED (
        SELECT s.workspace_id
        FROM bot_settings s
        JOIN workspaces w
          ON w.workspace_id = s.workspace_id
         AND w.status = 'active'
        WHERE s.enabled
          AND coalesce(s.subscriptions_read_at < (SELECT clock_timestamp() - p_older), true)
        ORDER BY s.subscriptions_read_at NULLS FIRST, s.workspace_id
        LIMIT p_limit
        FOR NO KEY UPDATE OF s SKIP LOCKED
    )
    UPDATE bot_settings s
    SET subscriptions_read_at = clock_timestamp()
    FROM due d
    WHERE s.workspace_id = d.workspace_id
    RETURNING s.workspace_id, s.provider, s.auth_ref
$$;
