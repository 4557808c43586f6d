-- settle_reply_circuit(workspace_id, replies, place, run_id, now)
--
-- What these outcomes mean for the rate group: the same as those of posts, by the same functions. A reply counts as one
-- delivery, by its reply_id.
--
-- place     of the group, which lock_reply_group has locked
-- Changes   platform_limits
-- Appends   group_opened, group_closed
-- Locks     platform_limits: held by the caller
CREATE OR REPLACE FUNCTION settle_reply_circuit(
    p_workspace_id uuid,
    p_replies decided_reply[],
    p_place tid,
    p_run_id uuid,
    p_now timestamptz
)
RETURNS void
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
DECLARE
    _outcomes decided_outcome[];
BEGIN
    SELECT array_agg(o)
    INTO _outcomes
    FROM platform_limits g
    CROSS JOIN unnest(p_replies) AS r
    CROSS JOIN LATERAL jsonb_populate_record(NULL::decided_outcome, jsonb_build_object(
        'place', r.place, 'delivery_id', r.reply_id, 'result', r.result, 'error', r.error, 'category', r.category,
        'status', CASE r.status WHEN 'sent' THEN 'sent' WHEN 'failed' THEN 'failed_permanent' ELSE 'retry' END,
        'scope', r.scope, 'code', r.code, 'retry_after_ms', r.retry_after_ms, 'platform', g.platform,
        'rate_group', g.rate_group, 'in_storm', false, 'answered', r.answered)) AS o
    WHERE g.workspace_id = p_workspace_id
      AND g.ctid = p_place;
    PERFORM cool_groups(p_workspace_id, _outcomes, settle_circuits(p_workspace_id, _outcomes, ARRAY[p_place], p_run_id, p_now),
                        p_now);
END $$;
