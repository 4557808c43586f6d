-- decide_outcomes(workspace_id, outcomes, places, jitter, now) -> a decided_outcome for each, in order
--
-- Reads what the outcomes say and decides the next state of each delivery. It writes nothing.
--
-- places       of lock_claims: where the deliveries are; null for a stale outcome
-- jitter       for tests; null draws a random number for each retry
-- in_storm     three channels of a group were refused for the same credential within a minute: see token_storms
CREATE OR REPLACE FUNCTION decide_outcomes(
    p_workspace_id uuid,
    p_outcomes jsonb,
    p_places tid[],
    p_jitter double precision,
    p_now timestamptz
)
RETURNS decided_outcome[]
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
DECLARE
    _decided decided_outcome[];
BEGIN
    WITH reported AS MATERIALIZED (
        SELECT o.*, d.*, n.decision,
               CASE
                   WHEN d.row_place IS NULL THEN NULL
                   WHEN o.result = 'sent' THEN 'sent'
                   WHEN o.result = 'released' THEN CASE WHEN d.cancel_request IS NULL THEN 'retry' ELSE 'cancelled' END
                   WHEN n.decision = 'permanent' THEN 'failed_permanent'
                   WHEN n.decision = 'cancel' THEN 'cancelled'
                   WHEN n.decision = 'dead' THEN 'dead'
                   ELSE 'retry'
               END::delivery_status AS status,
               o.result = 'failed' AND n.decision = 'hold' AS on_hold,
               CASE WHEN o.retry_after_ms IS NOT NULL
                    THEN least(greatest(o.retry_after_ms, 0), 1e15) END::bigint AS wait_ms,
               CASE WHEN o.code = 'chat_migrated' THEN o.migrated_to END AS new_target
        FROM ROWS FROM (jsonb_to_recordset(p_outcomes) AS (
            delivery_id uuid, result text, provider_message_id text, parts jsonb, meta jsonb, payload_ref text,
            category text, scope text, code text, message text, snippet text, retry_after_ms numeric, migrated_to text,
            ambiguous boolean, hold boolean, answered boolean
        )) WITH ORDINALITY AS o (
            delivery_id, result, provider_message_id, parts, meta, payload_ref, category, scope, code, message, snippet,
            retry_after_ms, migrated_to, ambiguous, hold, answered, place
        )
        LEFT JOIN LATERAL (
            SELECT d.ctid AS row_place, d.message_id, d.channel_id, d.attempt, d.max_attempts, d.policy, d.trace_id,
                   d.cancel_request, c.on_ambiguous, c.error_streak, c.enabled, c.platform, c.rate_group
            FROM deliveries d
            CROSS JOIN LATERAL (
                SELECT c.on_ambiguous, c.error_streak, c.enabled, c.platform, c.rate_group
                FROM channels c
                WHERE c.workspace_id = p_workspace_id
                  AND c.channel_id = d.channel_id
                OFFSET 0
            ) AS c
            WHERE d.ctid = p_places[o.place]
            OFFSET 0
        ) AS d ON true
        CROSS JOIN LATERAL (
            SELECT retry_decision(o.category, o.code, o.ambiguous, CASE WHEN o.hold THEN 'hold' ELSE d.on_ambiguous END,
                                  d.attempt, d.max_attempts, d.policy, d.cancel_request IS NOT NULL) AS decision
        ) AS n
    ), storms AS MATERIALIZED (
        SELECT s.platform, s.rate_group, s.code
        FROM (
            SELECT array_agg(r.channel_id) AS channels, array_agg(r.code) AS codes
            FROM reported r
            WHERE r.status = 'failed_permanent' AND r.scope = 'channel' AND is_token_code(r.code)
        ) AS failing
        CROSS JOIN LATERAL token_storms(p_workspace_id, failing.channels, failing.codes, p_now) AS s
        WHERE failing.channels IS NOT NULL
    )
    SELECT array_agg((
               r.place, r.delivery_id, r.row_place, r.message_id, r.channel_id, r.attempt, r.trace_id, r.result,
               r.status, r.on_hold,
               CASE
                   WHEN r.status IS DISTINCT FROM 'retry' THEN NULL
                   WHEN r.on_hold THEN 'infinity'
                   WHEN r.result = 'released' OR r.new_target IS NOT NULL THEN p_now
                   ELSE p_now + retry_delay(r.attempt, r.wait_ms, r.code, r.policy, coalesce(p_jitter, random()))
               END::timestamptz,
               CASE WHEN r.result = 'failed' THEN bounded_error(jsonb_strip_nulls(jsonb_build_object(
                   'category', r.category, 'scope', r.scope, 'code', r.code, 'message', left(r.message, 500),
                   'snippet', left(r.snippet, 500), 'retry_after_ms', r.wait_ms,
                   'ambiguous', nullif(coalesce(r.ambiguous, false), false)))) END,
               r.provider_message_id, r.parts,
               CASE r.status WHEN 'cancelled' THEN coalesce(r.meta, '{}') || r.cancel_request ELSE r.meta END, r.payload_ref, r.category, r.scope, r.code, r.wait_ms,
               r.new_target, r.platform, r.rate_group, r.error_streak, r.enabled,
               EXISTS (
                   SELECT 1
                   FROM storms s
                   WHERE s.platform = r.platform AND s.rate_group = r.rate_group AND s.code = r.code
               ),
               r.result = 'sent' OR (r.result = 'failed' AND coalesce(r.answered, false))
           )::decided_outcome ORDER BY r.place)
    INTO _decided
    FROM reported r;
    RETURN coalesce(_decided, '{}');
END $$;
