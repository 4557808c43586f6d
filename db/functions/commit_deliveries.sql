-- commit_deliveries(workspace_id, outcomes) -> one verdict per outcome: 'committed' | 'stale'
--
-- Records how sends ended and moves each delivery to its next state, with the penalties that follow.
--
-- outcomes     [{"delivery_id", "claim_token", "result": "sent" | "failed" | "released", …}]
--              sent      provider_message_id, parts, meta
--              failed    category, scope, code, message, retry_after_ms, ambiguous, payload_ref, snippet
--              released  given back unsent: due again at once, no error
-- stale        the token is not the current one: the lease ran out and the claim passed on. Nothing is changed
--              but a stale_commit event; the caller drops its result.
-- Changes      sending -> sent | retry | failed_permanent | dead
-- Appends      sent | retry_scheduled | failed_permanent | dead_letter | held, channel_paused, channel_disabled
-- Penalties    PERMANENT channel: streak + 1, pause, disable at the streak; sent: streak back to 0 (written only
--              when it was not 0). A wait asked for by the provider moves the gate of the group (scope platform)
--              or of the channel (scope channel), for PERMANENT platform also without one (60 s).
-- Locks        platform_limits, channels, deliveries: in that order, each by key, everywhere
-- Raises       AP001 if an outcome is not one we know.
CREATE OR REPLACE FUNCTION commit_deliveries(
    p_workspace_id uuid,
    p_outcomes jsonb,
    p_pause interval DEFAULT '1 hour',
    p_disable_streak int DEFAULT 3,
    p_jitter double precision DEFAULT NULL
)
RETURNS TABLE (delivery_id uuid, verdict text, status delivery_status, next_retry_at timestamptz)
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    _now timestamptz;
    _unknown text;
BEGIN
    SELECT o ->> 'result'
    INTO _unknown
    FROM jsonb_array_elements(p_outcomes) AS o
    WHERE coalesce(o ->> 'result', '') NOT IN ('sent', 'failed', 'released')
       OR (o ->> 'result' = 'failed' AND (coalesce(o ->> 'category', '') NOT IN ('TRANSIENT', 'PERMANENT')
                                          OR coalesce(o ->> 'scope', '') NOT IN ('delivery', 'channel', 'platform')))
    LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'unknown outcome %', coalesce(_unknown, 'null')
            USING ERRCODE = 'AP001', HINT = 'result is sent, failed or released; a failure has a category and a scope';
    END IF;

    PERFORM lock_gates(p_workspace_id, p_outcomes);
    _now := clock_timestamp();

    RETURN QUERY
    WITH outcomes AS MATERIALIZED (
        SELECT *
        FROM jsonb_to_recordset(p_outcomes) AS o (
            delivery_id uuid, claim_token uuid, result text, provider_message_id text, parts jsonb, meta jsonb,
            category text, scope text, code text, message text, snippet text, retry_after_ms bigint,
            ambiguous boolean, payload_ref text
        )
    ), held AS MATERIALIZED (
        SELECT d.workspace_id, d.delivery_id, d.message_id, d.channel_id, d.attempt, d.max_attempts, d.policy,
               d.trace_id, c.on_ambiguous, c.error_streak, c.enabled AS channel_enabled, c.platform,
               c.rate_group
        FROM outcomes o
        JOIN deliveries d
          ON d.workspace_id = p_workspace_id
         AND d.delivery_id = o.delivery_id
        JOIN channels c
          ON c.workspace_id = d.workspace_id
         AND c.channel_id = d.channel_id
        WHERE d.status = 'sending'
          AND d.claim_token = o.claim_token
        ORDER BY d.delivery_id
        FOR UPDATE OF d
    ), judged AS MATERIALIZED (
        SELECT h.*, o.result, o.provider_message_id, o.parts, o.meta, o.payload_ref, o.category, o.scope, o.code,
               o.retry_after_ms, coalesce(o.ambiguous, false) AS ambiguous,
               CASE
                   WHEN o.result = 'sent' THEN 'sent'
                   WHEN o.result = 'released' THEN 'retry'
                   WHEN o.category = 'PERMANENT' THEN 'failed_permanent'
                   WHEN o.ambiguous AND h.on_ambiguous = 'hold' THEN 'retry'
                   WHEN h.attempt >= h.max_attempts THEN 'dead'
                   ELSE 'retry'
               END::delivery_status AS new_status,
               o.result = 'failed' AND coalesce(o.ambiguous, false) AND h.on_ambiguous = 'hold'
                   AND o.category = 'TRANSIENT' AS on_hold,
               CASE
                   WHEN o.result = 'failed' THEN jsonb_strip_nulls(jsonb_build_object(
                       'category', o.category, 'scope', o.scope, 'code', o.code, 'message', left(o.message, 500),
                       'snippet', left(o.snippet, 500), 'retry_after_ms', o.retry_after_ms,
                       'ambiguous', nullif(coalesce(o.ambiguous, false), false)))
               END AS error
        FROM held h
        JOIN outcomes o USING (delivery_id)
    ), timed AS MATERIALIZED (
        SELECT j.*,
               CASE
                   WHEN j.on_hold THEN 'infinity'
                   WHEN j.result = 'released' THEN _now
                   WHEN j.new_status = 'retry' THEN
                       _now + retry_delay(j.attempt, j.retry_after_ms, j.code, j.policy, coalesce(p_jitter, random()))
               END::timestamptz AS retry_at
        FROM judged j
    ), moved AS (
        UPDATE deliveries d
        SET status = t.new_status,
            sent_at = CASE WHEN t.new_status = 'sent' THEN _now END,
            provider_message_id = coalesce(t.provider_message_id, d.provider_message_id),
            next_retry_at = t.retry_at,
            hold_reason = CASE WHEN t.on_hold THEN 'ambiguous' END,
            last_error = CASE WHEN t.new_status = 'sent' THEN d.last_error ELSE coalesce(t.error, d.last_error) END,
            claimed_at = NULL,
            claim_token = NULL,
            sending_started_at = NULL,
            sending_lease_until = NULL,
            event_count = d.event_count + 1,
            updated_at = _now
        FROM timed t
        WHERE d.workspace_id = p_workspace_id
          AND d.delivery_id = t.delivery_id
        RETURNING d.delivery_id
    ), told AS (
        INSERT INTO events (workspace_id, delivery_id, message_id, channel_id, action, attempt, result, error,
                            payload_ref, meta)
        SELECT p_workspace_id, t.delivery_id, t.message_id, t.channel_id,
               CASE
                   WHEN t.new_status = 'sent' THEN 'sent'
                   WHEN t.new_status = 'failed_permanent' THEN 'failed_permanent'
                   WHEN t.new_status = 'dead' THEN 'dead_letter'
                   WHEN t.on_hold THEN 'held'
                   ELSE 'retry_scheduled'
               END::event_action,
               t.attempt,
               CASE WHEN t.result = 'failed' THEN 'error' ELSE 'ok' END::event_result,
               t.error, t.payload_ref,
               jsonb_strip_nulls(jsonb_build_object(
                   'trace_id', t.trace_id, 'idempotency_key', t.delivery_id,
                   'provider_message_id', t.provider_message_id, 'parts', t.parts,
                   'next_retry_at', nullif(t.retry_at, 'infinity'),
                   'released', CASE WHEN t.result = 'released' THEN true END) || coalesce(t.meta, '{}'))
        FROM timed t
        ORDER BY t.delivery_id
    ), effects AS MATERIALIZED (
        SELECT t.channel_id, t.channel_enabled,
               count(*) FILTER (WHERE t.new_status = 'failed_permanent' AND t.scope = 'channel')::int AS failures,
               min(t.code) FILTER (WHERE t.new_status = 'failed_permanent' AND t.scope = 'channel') AS code,
               max(t.retry_after_ms) FILTER (WHERE t.category = 'TRANSIENT' AND t.scope = 'channel') AS wait_ms
        FROM timed t
        GROUP BY t.channel_id, t.channel_enabled
        HAVING bool_or(t.scope = 'channel')
            OR bool_or(t.new_status = 'sent' AND t.error_streak <> 0)
    ), channels_judged AS (
        UPDATE channels c
        SET error_streak = CASE WHEN e.failures > 0 THEN c.error_streak + e.failures
                                WHEN e.wait_ms IS NOT NULL THEN c.error_streak
                                ELSE 0 END,
            paused_until = CASE WHEN e.failures > 0 THEN greatest(c.paused_until, _now + p_pause)
                                ELSE c.paused_until END,
            enabled = c.enabled AND (e.failures = 0 OR c.error_streak + e.failures < p_disable_streak),
            next_allowed_at = greatest(c.next_allowed_at, _now + make_interval(secs => e.wait_ms / 1000.0)),
            updated_at = _now
        FROM effects e
        WHERE c.workspace_id = p_workspace_id
          AND c.channel_id = e.channel_id
        RETURNING c.channel_id, c.error_streak, c.paused_until, e.code, e.failures > 0 AS paused,
                  e.channel_enabled AND NOT c.enabled AS disabled
    ), told_of_channels AS (
        INSERT INTO events (workspace_id, channel_id, action, result, error, meta)
        SELECT p_workspace_id, j.channel_id, a.action, 'error',
               jsonb_build_object('code', j.code, 'scope', 'channel'),
               jsonb_build_object('error_streak', j.error_streak, 'paused_until', j.paused_until)
        FROM channels_judged j
        CROSS JOIN LATERAL (
            SELECT 1 AS n, 'channel_paused'::event_action AS action
            UNION ALL
            SELECT 2, 'channel_disabled' WHERE j.disabled
        ) AS a
        WHERE j.paused
        ORDER BY j.channel_id, a.n
    ), cooled_groups AS (
        UPDATE platform_limits g
        SET next_allowed_at = greatest(g.next_allowed_at, s.until),
            updated_at = _now
        FROM (
            SELECT platform, rate_group,
                   _now + make_interval(secs => max(coalesce(retry_after_ms, 60000)) / 1000.0) AS until
            FROM timed
            WHERE scope = 'platform' AND (retry_after_ms IS NOT NULL OR category = 'PERMANENT')
            GROUP BY platform, rate_group
        ) AS s
        WHERE g.workspace_id = p_workspace_id
          AND g.platform = s.platform
          AND g.rate_group = s.rate_group
    ), told_of_stale AS (
        INSERT INTO events (workspace_id, delivery_id, message_id, channel_id, action, attempt, result, error, meta)
        SELECT p_workspace_id, o.delivery_id, d.message_id, d.channel_id, 'stale_commit', coalesce(d.attempt, 0),
               'error', jsonb_build_object('code', 'stale_commit', 'message', o.result),
               jsonb_strip_nulls(jsonb_build_object('trace_id', d.trace_id, 'status', d.status,
                                                    'provider_message_id', o.provider_message_id))
        FROM outcomes o
        LEFT JOIN deliveries d
          ON d.workspace_id = p_workspace_id
         AND d.delivery_id = o.delivery_id
        WHERE NOT EXISTS (SELECT 1 FROM held h WHERE h.delivery_id = o.delivery_id)
    )
    SELECT o.delivery_id,
           CASE WHEN t.delivery_id IS NULL THEN 'stale' ELSE 'committed' END,
           t.new_status,
           t.retry_at
    FROM outcomes o
    LEFT JOIN timed t ON t.delivery_id = o.delivery_id;
END $$;
