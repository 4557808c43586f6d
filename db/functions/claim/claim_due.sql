-- claim_due(workspace_ids, run_id, limit, most) -> what is due in these workspaces, already `sending`
--
-- A claim_deliveries in each of these workspaces, as statements over all of them. So the fixed cost of a claim is paid
-- once, and not for each workspace that has a slot. Guarantees, slots and gates are those of claim_deliveries; its
-- lock of the workspace is replaced by the locks of the rate groups, which no two claims hold at once.
--
-- First row    `shared` alone, also when nothing was claimed: {"shared": the document of claim_deliveries or null,
--              "workspaces": {workspace_id: {"due_in": seconds until another claim is worthwhile, null for never,
--              "looked": false when no channel was looked at, because nothing is due or another claim is there,
--              "alone": true for a workspace that was left out: a pause has expired there after which a catch-up policy
--              applies, and only claim_deliveries ends pauses}}}
-- limit, most  deliveries of one workspace, and of all of them together
-- Claim        one token and one lease for all rows
-- Fails        as a whole: the caller finds the workspace that is to blame, and claims in the others
-- Locks        as claim_deliveries, in the order of workspaces; it never waits for another claim
-- Steps        lock_rate_groups, choose_deliveries, note_turns, due_times, claim_shared, start_sending
CREATE OR REPLACE FUNCTION claim_due(
    p_workspace_ids uuid[],
    p_run_id uuid,
    p_limit int,
    p_most int,
    p_lease interval DEFAULT '300 seconds',
    p_tolerance interval DEFAULT '50 milliseconds',
    p_now timestamptz DEFAULT NULL
)
RETURNS TABLE (
    workspace_id uuid,
    delivery_id uuid,
    message_id uuid,
    channel_id uuid,
    rendering_id uuid,
    attempt int,
    claim_token uuid,
    sending_lease_until timestamptz,
    slot_at timestamptz,
    render_meta jsonb,
    verify boolean,
    trace_id text,
    traceparent text,
    created_at timestamptz,
    shared text
)
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
    _now timestamptz := coalesce(p_now, clock_timestamp());
    _token uuid := gen_random_uuid();
    _workspaces uuid[];
    _alone uuid[];
    _groups tid[];
    _chosen record;
BEGIN
    SELECT array_agg(w.workspace_id ORDER BY w.workspace_id) FILTER (WHERE NOT w.is_alone),
           coalesce(array_agg(w.workspace_id) FILTER (WHERE w.is_alone), '{}')
    INTO _workspaces, _alone
    FROM (
        SELECT g.workspace_id,
               EXISTS (
                   SELECT 1
                   FROM channels c
                   WHERE c.workspace_id = g.workspace_id
                     AND c.enabled
                     AND c.paused_until <= _now
                     AND c.catch_up ->> 'policy' <> 'all'
               ) AS is_alone
        FROM (SELECT DISTINCT unnest(p_workspace_ids) AS workspace_id) AS g
        CROSS JOIN LATERAL ( -- each by key, whatever the planner estimates
            SELECT
            FROM workspaces w
            WHERE w.workspace_id = g.workspace_id
              AND w.status = 'active'
            OFFSET 0
        ) AS w
    ) AS w;

    _groups := lock_rate_groups(_workspaces, false, p_now);
    _now := coalesce(p_now, clock_timestamp()); -- read after the rate groups are locked
    _chosen := choose_deliveries(_groups, p_limit, p_most, 0, p_tolerance, _now);
    PERFORM note_turns(_chosen.workspaces, _now, interval '1 second');

    RETURN QUERY
    SELECT NULL::uuid, NULL::uuid, NULL::uuid, NULL::uuid, NULL::uuid, NULL::int, NULL::uuid, NULL::timestamptz,
           NULL::timestamptz, NULL::jsonb, NULL::boolean, NULL::text, NULL::text, NULL::timestamptz,
           json_build_object(
               'workspaces', (
                   SELECT json_object_agg(t.workspace_id, json_build_object(
                              'due_in', CASE WHEN t.next_due_at < 'infinity'
                                             THEN date_part('epoch', t.next_due_at - clock_timestamp()) END,
                              'looked', coalesce(t.workspace_id = ANY (_chosen.looked_in), false),
                              'alone', t.workspace_id = ANY (_alone)))
                   FROM due_times(_workspaces || _alone) AS t
               ),
               'shared', CASE WHEN _chosen.places IS NOT NULL
                              THEN claim_shared(_chosen.workspaces, _chosen.channels, _chosen.renderings) END
           )::text;
    IF _chosen.places IS NOT NULL THEN
        RETURN QUERY
        SELECT s.workspace_id, s.delivery_id, s.message_id, s.channel_id, s.rendering_id, s.attempt, _token,
               s.sending_lease_until, s.slot_at, s.render_meta, s.verify, s.trace_id, s.traceparent, s.created_at,
               NULL::text
        FROM start_sending(_chosen.places, _chosen.slots, _token, p_run_id, p_lease, _now) AS s;
    END IF;
END $$;
