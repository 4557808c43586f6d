-- commit_deliveries(workspace_id, outcomes, …, run_id) -> one verdict per outcome: 'committed' | 'stale'
--
-- Records how sends ended and moves each delivery to its next state, with the penalties that follow.
--
-- outcomes     [{"delivery_id", "claim_token", "result": "sent" | "failed" | "released", …}]
--              sent      provider_message_id, parts, meta
--              failed    category, scope, code, message, retry_after_ms, ambiguous, payload_ref, snippet, migrated_to,
--                        hold: the platform cannot be asked, a human must decide (only with ambiguous)
--              released  given back unsent: due again at once, no error
-- stale        the token is not the current one: the lease ran out and the claim passed on, or an earlier outcome
--              of this batch has used it. Nothing is changed but a stale_commit event; the caller drops its result.
-- Changes      sending -> sent | retry | failed_permanent | dead
-- Appends      sent | retry_scheduled | failed_permanent | dead_letter | held, channel_paused, channel_disabled,
--              channel_migrated
-- Penalties    PERMANENT channel: streak + 1, pause, disable at the streak; sent: streak back to 0 (written only
--              when it was not 0), and before what failed in the same batch is counted. A wait asked for by the
--              provider moves the gate of the group (scope platform) or of the channel (scope channel), for
--              PERMANENT platform also without one (60 s). A credential that three channels of a group were refused
--              for within a minute cools the group instead, and the failed_permanent event says so.
-- Moves        a chat that the platform has moved (code chat_migrated, migrated_to): the channel gets its new target,
--              unless another channel has it, and the delivery is due at once, without a penalty.
-- Locks        platform_limits, channels, deliveries: in that order, each by key, everywhere
-- Faster       commit_sent, for outcomes that are all 'sent' in one part
-- Raises       AP001 if an outcome is not one we know.
CREATE OR REPLACE FUNCTION commit_deliveries(
    p_workspace_id uuid,
    p_outcomes jsonb,
    p_pause interval DEFAULT '1 hour',
    p_disable_streak int DEFAULT 3,
    p_jitter double precision DEFAULT NULL,
    p_run_id uuid DEFAULT NULL
)
RETURNS TABLE (delivery_id uuid, verdict text, status delivery_status, next_retry_at timestamptz)
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
    _now timestamptz;
    _unknown text;
    _some_failed boolean;
    _delivery_ids uuid[];
    _claim_tokens uuid[];
    _places tid[];
    _gated uuid[] := '{}';
    _groups tid[] := '{}';
    _drawn text := new_id();
    _first_id bigint := id_start(_drawn);
    _ids text := left(_drawn, 24);
BEGIN
    SELECT min(coalesce(o.result, 'null')) FILTER (
               WHERE coalesce(o.result, '') NOT IN ('sent', 'failed', 'released')
                  OR (o.result = 'failed' AND (coalesce(o.category, '') NOT IN ('TRANSIENT', 'PERMANENT')
                                               OR coalesce(o.scope, '') NOT IN ('delivery', 'channel', 'platform')))),
           bool_or(o.result = 'failed'),
           array_agg(o.delivery_id),
           array_agg(o.claim_token)
    INTO _unknown, _some_failed, _delivery_ids, _claim_tokens
    FROM jsonb_to_recordset(p_outcomes)
        AS o (result text, category text, scope text, delivery_id uuid, claim_token uuid);
    IF _unknown IS NOT NULL THEN
        RAISE EXCEPTION 'unknown outcome %', _unknown
            USING ERRCODE = 'AP001', HINT = 'result is sent, failed or released; a failure has a category and a scope';
    END IF;

    IF _some_failed
       OR EXISTS (SELECT 1 FROM channels c WHERE c.workspace_id = p_workspace_id AND c.error_streak > 0) THEN
        SELECT l.channels, l.groups INTO _gated, _groups FROM lock_gates(p_workspace_id, p_outcomes) AS l;
    END IF;
    _places := hold_claims(p_workspace_id, _delivery_ids, _claim_tokens);
    _now := clock_timestamp();

    RETURN QUERY
    WITH outcomes AS MATERIALIZED (
        SELECT g.place, g.o, (g.o ->> 'delivery_id')::uuid AS delivery_id
        FROM jsonb_array_elements(p_outcomes) WITH ORDINALITY AS g (o, place)
    ), held AS MATERIALIZED (
        SELECT o.place, d.ctid AS row_place, d.delivery_id, d.message_id, d.channel_id, d.attempt, d.max_attempts,
               d.policy, d.trace_id,
               c.on_ambiguous, c.error_streak, c.enabled AS channel_enabled, c.platform, c.rate_group,
               o.o ->> 'result' AS result,
               o.o ->> 'provider_message_id' AS provider_message_id,
               nullif(o.o -> 'parts', 'null') AS parts,
               nullif(o.o -> 'meta', 'null') AS meta,
               o.o ->> 'payload_ref' AS payload_ref,
               o.o ->> 'category' AS category,
               o.o ->> 'scope' AS scope,
               o.o ->> 'code' AS code,
               o.o ->> 'message' AS message,
               o.o ->> 'snippet' AS snippet,
               (o.o ->> 'retry_after_ms')::bigint AS retry_after_ms,
               CASE WHEN o.o ->> 'code' = 'chat_migrated' THEN o.o ->> 'migrated_to' END AS migrated_to,
               coalesce((o.o ->> 'ambiguous')::boolean, false) AS ambiguous,
               coalesce((o.o ->> 'hold')::boolean, false) AS hold
        FROM outcomes o
        JOIN deliveries d ON d.ctid = _places[o.place]
        CROSS JOIN LATERAL (
            SELECT c.on_ambiguous, c.error_streak, c.enabled, c.platform, c.rate_group
            FROM channels c
            WHERE c.workspace_id = p_workspace_id
              AND c.channel_id = d.channel_id
            OFFSET 0
        ) AS c
    ), judged AS MATERIALIZED (
        SELECT h.*,
               CASE
                   WHEN h.result = 'sent' THEN 'sent'
                   WHEN h.result = 'released' THEN 'retry'
                   WHEN h.category = 'PERMANENT' THEN 'failed_permanent'
                   WHEN h.ambiguous AND (h.on_ambiguous = 'hold' OR h.hold) THEN 'retry'
                   WHEN h.attempt >= h.max_attempts THEN 'dead'
                   ELSE 'retry'
               END::delivery_status AS new_status,
               h.result = 'failed' AND h.category = 'TRANSIENT' AND h.ambiguous
                   AND (h.on_ambiguous = 'hold' OR h.hold) AS on_hold,
               CASE
                   WHEN h.result = 'failed' THEN jsonb_strip_nulls(jsonb_build_object(
                       'category', h.category, 'scope', h.scope, 'code', h.code, 'message', left(h.message, 500),
                       'snippet', left(h.snippet, 500), 'retry_after_ms', h.retry_after_ms,
                       'ambiguous', nullif(h.ambiguous, false)))
               END AS error
        FROM held h
    ), timed AS MATERIALIZED (
        SELECT j.*,
               CASE
                   WHEN j.on_hold THEN 'infinity'
                   WHEN j.result = 'released' OR (j.new_status = 'retry' AND j.migrated_to IS NOT NULL) THEN _now
                   WHEN j.new_status = 'retry' THEN
                       _now + retry_delay(j.attempt, j.retry_after_ms, j.code, j.policy, coalesce(p_jitter, random()))
               END::timestamptz AS retry_at
        FROM judged j
    ), storms AS MATERIALIZED (
        SELECT s.platform, s.rate_group, s.code
        FROM (
            SELECT array_agg(t.channel_id) AS channels, array_agg(t.code) AS codes
            FROM timed t
            WHERE t.new_status = 'failed_permanent' AND t.scope = 'channel' AND is_token_code(t.code)
        ) AS failing
        CROSS JOIN LATERAL token_storms(p_workspace_id, failing.channels, failing.codes, _now) AS s
        WHERE failing.channels IS NOT NULL
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
        WHERE d.ctid = t.row_place
        RETURNING d.delivery_id
    ), told AS (
        INSERT INTO events (id, workspace_id, delivery_id, message_id, channel_id, action, attempt, result, error,
                            payload_ref, meta)
        SELECT id_in(_ids, _first_id + t.place), p_workspace_id, t.delivery_id, t.message_id, t.channel_id,
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
               event_meta(t.trace_id, p_run_id, jsonb_build_object(
                   'idempotency_key', t.delivery_id,
                   'provider_message_id', t.provider_message_id, 'parts', t.parts,
                   'next_retry_at', nullif(t.retry_at, 'infinity'),
                   'group_cooled', CASE WHEN EXISTS (
                       SELECT 1
                       FROM storms s
                       WHERE s.platform = t.platform AND s.rate_group = t.rate_group AND s.code = t.code
                   ) THEN true END,
                   'released', CASE WHEN t.result = 'released' THEN true END) || coalesce(t.meta, '{}'))
        FROM timed t
        ORDER BY t.delivery_id
        RETURNING 1
    ), effects AS MATERIALIZED (
        SELECT t.channel_id, t.channel_enabled,
               count(*) FILTER (WHERE t.is_penalty)::int AS failures,
               min(t.code) FILTER (WHERE t.is_penalty) AS code,
               min(t.trace_id) FILTER (WHERE t.is_penalty) AS trace_id,
               bool_or(t.new_status = 'sent') AS arrived,
               max(t.retry_after_ms) FILTER (WHERE t.category = 'TRANSIENT' AND t.scope = 'channel') AS wait_ms
        FROM (
            SELECT t.*,
                   t.new_status = 'failed_permanent' AND t.scope = 'channel' AND NOT EXISTS (
                       SELECT 1
                       FROM storms s
                       WHERE s.platform = t.platform AND s.rate_group = t.rate_group AND s.code = t.code
                   ) AS is_penalty
            FROM timed t
        ) AS t
        GROUP BY t.channel_id, t.channel_enabled
        HAVING bool_or(t.is_penalty)
            OR bool_or(t.category = 'TRANSIENT' AND t.scope = 'channel')
            OR bool_or(t.new_status = 'sent' AND t.error_streak <> 0 AND t.channel_id = ANY (_gated))
    ), channels_judged AS (
        UPDATE channels c
        SET error_streak = CASE WHEN e.arrived THEN 0 ELSE c.error_streak END + e.failures,
            paused_until = CASE WHEN e.failures > 0 THEN greatest(c.paused_until, _now + p_pause)
                                ELSE c.paused_until END,
            enabled = c.enabled AND (e.failures = 0 OR CASE WHEN e.arrived THEN 0 ELSE c.error_streak END + e.failures
                                                       < p_disable_streak),
            next_allowed_at = greatest(c.next_allowed_at, _now + make_interval(secs => e.wait_ms / 1000.0)),
            updated_at = _now
        FROM effects e
        WHERE c.workspace_id = p_workspace_id
          AND c.channel_id = e.channel_id
        RETURNING c.channel_id, c.error_streak, c.paused_until, e.code, e.trace_id, e.failures > 0 AS paused,
                  e.channel_enabled AND NOT c.enabled AS disabled
    ), told_of_channels AS (
        INSERT INTO events (workspace_id, channel_id, action, result, error, meta)
        SELECT p_workspace_id, j.channel_id, a.action, 'error',
               jsonb_build_object('code', j.code, 'scope', 'channel'),
               event_meta(j.trace_id, p_run_id, jsonb_build_object(
                   'error_streak', j.error_streak, 'paused_until', j.paused_until))
        FROM channels_judged j
        CROSS JOIN LATERAL (
            SELECT 1 AS n, 'channel_paused'::event_action AS action
            UNION ALL
            SELECT 2, 'channel_disabled' WHERE j.disabled
        ) AS a
        WHERE j.paused
          AND EXISTS (SELECT 1 FROM told) -- the failure is told before what follows from it
        ORDER BY j.channel_id, a.n
    ), cooled_groups AS (
        UPDATE platform_limits g
        SET next_allowed_at = greatest(g.next_allowed_at, s.until),
            updated_at = _now
        FROM (
            SELECT w.platform, w.rate_group,
                   _now + make_interval(secs => max(coalesce(w.wait_ms, 60000)) / 1000.0) AS until
            FROM (
                SELECT t.platform, t.rate_group, t.retry_after_ms AS wait_ms
                FROM timed t
                WHERE t.scope = 'platform' AND (t.retry_after_ms IS NOT NULL OR t.category = 'PERMANENT')
                UNION ALL
                SELECT s.platform, s.rate_group, NULL
                FROM storms s
            ) AS w
            GROUP BY w.platform, w.rate_group
        ) AS s
        WHERE g.workspace_id = p_workspace_id
          AND g.platform = s.platform
          AND g.rate_group = s.rate_group
          AND g.ctid = ANY (_groups)
    ), migrated AS (
        UPDATE channels c
        SET target_id = m.migrated_to,
            updated_at = _now
        FROM (SELECT t.channel_id, min(t.migrated_to) AS migrated_to, min(t.trace_id) AS trace_id FROM timed t
              WHERE t.migrated_to IS NOT NULL GROUP BY t.channel_id) AS m
        WHERE c.workspace_id = p_workspace_id
          AND c.channel_id = m.channel_id
          AND c.target_id <> m.migrated_to
          AND NOT EXISTS (
              SELECT 1
              FROM channels other
              WHERE other.workspace_id = p_workspace_id
                AND other.platform = c.platform
                AND other.target_id = m.migrated_to
          )
        RETURNING c.channel_id, c.target_id, m.trace_id
    ), told_of_migrated AS (
        INSERT INTO events (workspace_id, channel_id, action, meta)
        SELECT p_workspace_id, m.channel_id, 'channel_migrated',
               event_meta(m.trace_id, p_run_id, jsonb_build_object('target_id', m.target_id))
        FROM migrated m
        WHERE EXISTS (SELECT 1 FROM told)
    ), verdicts AS MATERIALIZED (
        -- Grouped, not joined: a planner that takes each side for one row would compare each with each.
        SELECT v.place, v.delivery_id, max(v.new_status) AS new_status, max(v.retry_at) AS retry_at
        FROM (
            SELECT o.place, o.delivery_id, NULL::delivery_status AS new_status, NULL::timestamptz AS retry_at
            FROM outcomes o
            UNION ALL
            SELECT t.place, t.delivery_id, t.new_status, t.retry_at
            FROM timed t
        ) AS v
        GROUP BY v.place, v.delivery_id
    ), told_of_stale AS (
        INSERT INTO events (workspace_id, delivery_id, message_id, channel_id, action, attempt, result, error, meta)
        SELECT p_workspace_id, v.delivery_id, d.message_id, d.channel_id, 'stale_commit', coalesce(d.attempt, 0),
               'error', jsonb_build_object('code', 'stale_commit', 'message', o.o ->> 'result'),
               event_meta(d.trace_id, p_run_id, jsonb_build_object(
                   'status', d.status, 'provider_message_id', o.o ->> 'provider_message_id'))
        FROM verdicts v
        JOIN outcomes o ON o.place = v.place
        LEFT JOIN deliveries d
          ON d.workspace_id = p_workspace_id
         AND d.delivery_id = v.delivery_id
        WHERE v.new_status IS NULL
    )
    SELECT v.delivery_id,
           CASE WHEN v.new_status IS NULL THEN 'stale' ELSE 'committed' END,
           v.new_status,
           v.retry_at
    FROM verdicts v
    ORDER BY v.place;
END $$;
