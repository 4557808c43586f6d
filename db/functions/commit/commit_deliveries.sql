-- commit_deliveries(workspace_id, outcomes, pause, disable_streak, jitter, run_id) -> one verdict per outcome
--
-- Records how sends ended: moves each delivery to its next state and applies the penalties that follow.
--
-- outcomes     [{"delivery_id", "claim_token", "result": "sent" | "failed" | "released", …}]
--              sent      provider_message_id, parts, meta
--              failed    category, scope, code, message, retry_after_ms, ambiguous, payload_ref, snippet, migrated_to,
--                        hold: the platform cannot be queried, an operator must decide (only with ambiguous);
--                        answered: the API of the platform answered definitely (see settle_circuits)
--              released  given back unsent: due again at once, no error
-- Verdicts     committed
--              stale     the token is not the current one: the lease ran out and the claim passed on, or an earlier
--                        outcome of this batch has used it. Only an event is written; the caller drops its result.
-- Steps        check_outcomes, lock_gates, lock_claims, decide_outcomes, apply_outcomes, and for failures and streaks
--              penalise_channels, settle_circuits, cool_groups, migrate_channels. Each is called once for the whole batch.
-- Changes      sending -> sent | retry | failed_permanent | dead; channels, platform_limits
-- Appends      sent | retry_scheduled | failed_permanent | dead_letter | held, stale_commit, then channel_paused,
--              channel_disabled, channel_migrated, group_opened, group_closed
-- Locks        platform_limits, channels, deliveries: in that order, each by key, everywhere
-- Faster       commit_sent, for outcomes that are all 'sent' in one part; commit_sent_across, for those of many workspaces
-- Fails        when a row is held by another transaction for a second: outcomes of others wait behind this call
-- Raises       AP001 for an unknown outcome
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
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET lock_timeout = '1s'
AS $$
#variable_conflict use_column
DECLARE
    _now timestamptz;
    _has_failed boolean;
    _delivery_ids uuid[];
    _claim_tokens uuid[];
    _places tid[];
    _channel_ids uuid[];
    _groups tid[];
    _decided decided_outcome[];
BEGIN
    PERFORM check_outcomes(p_outcomes);
    SELECT bool_or(o.result = 'failed'), array_agg(o.delivery_id), array_agg(o.claim_token)
    INTO _has_failed, _delivery_ids, _claim_tokens
    FROM jsonb_to_recordset(p_outcomes) AS o (result text, delivery_id uuid, claim_token uuid);

    IF _has_failed
       OR EXISTS (SELECT 1 FROM circuits_in_doubt(ARRAY[p_workspace_id]))
       OR EXISTS (SELECT 1 FROM channels c WHERE c.workspace_id = p_workspace_id AND c.error_streak > 0) THEN
        SELECT l.channels, l.groups INTO _channel_ids, _groups FROM lock_gates(p_workspace_id, p_outcomes) AS l;
    END IF;
    _places := lock_claims(
        array_fill(p_workspace_id, ARRAY[coalesce(cardinality(_delivery_ids), 0)]), _delivery_ids, _claim_tokens);
    _now := clock_timestamp();

    _decided := decide_outcomes(p_workspace_id, p_outcomes, _places, p_jitter, _now);
    PERFORM apply_outcomes(p_workspace_id, _decided, p_run_id, _now);
    IF _groups IS NOT NULL THEN -- else nothing failed, and there is no streak to reset and no circuit in doubt
        PERFORM penalise_channels(p_workspace_id, _decided, _channel_ids, p_pause, p_disable_streak, p_run_id, _now);
        _groups := settle_circuits(p_workspace_id, _decided, _groups, p_run_id, _now);
        PERFORM cool_groups(p_workspace_id, _decided, _groups, _now);
        PERFORM migrate_channels(p_workspace_id, _decided, p_run_id, _now);
    END IF;

    RETURN QUERY
    SELECT o.delivery_id, CASE WHEN o.status IS NULL THEN 'stale' ELSE 'committed' END, o.status, o.retry_at
    FROM unnest(_decided) AS o
    ORDER BY o.place;
END $$;
