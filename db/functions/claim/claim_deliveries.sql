-- claim_deliveries(workspace_id, run_id, limit) -> the deliveries to send now, already `sending`
--
-- Claims due deliveries under the rates of their channel and of its rate group, oldest first in a channel, channels in
-- turn inside a group. One slot is one provider call. `next_due_at` on every row is when another claim is worthwhile;
-- when no row is returned, call next_due_at().
--
-- Guarantees   status sending, attempt + 1, a fresh claim_token, sending_lease_until in the future, send_attempt
--              written: all before the caller sees the row
-- Shared       what many rows have in common, on the first row only, as JSON, each by workspace and id: {"plans":
--              {workspace_id: {rendering_id: what to send}}, "channels": {workspace_id: {channel_id: {platform,
--              target_id, auth_ref, rate_group, settings, pace}}}}; the pace is the minimum distance between two calls
--              of a delivery, in seconds
-- Verify       the last attempt may have arrived, and the channel wants a check with the platform before another
-- Empty        when the workspace is not active, another claim is running in it (see note_refused_claim), or nothing
--              may be sent yet
-- Cost         grows with what is claimed: only channels that are due by channel_due are read, each once
-- Changes      queued | retry -> sending; where a pause has expired, what the catch-up policy drops: see end_pauses
-- Appends      send_attempt
-- Locks        platform_limits, channels, deliveries: each by key. After platform_limits it skips what others hold,
--              except for what end_pauses locks.
-- Steps        end_pauses, lock_rate_groups, choose_deliveries, note_turns, claim_shared, start_sending
-- Others       claim_due, for many workspaces at once
--
-- How a channel is closed. What a claim reads in the queue may be older than a delivery that is being enqueued. So a
-- channel is declared empty only under FOR UPDATE on its channel_due, and only by a statement that starts after that
-- lock. A transaction that adds a delivery there cannot share the lock: deliveries_after_insert and
-- deliveries_after_update hold the row FOR KEY SHARE until they commit. Likewise a channel is declared full only while
-- its 'ended' counter is held.
CREATE OR REPLACE FUNCTION claim_deliveries(
    p_workspace_id uuid,
    p_run_id uuid,
    p_limit int,
    p_lease interval DEFAULT '300 seconds',
    p_tolerance interval DEFAULT '50 milliseconds',
    p_now timestamptz DEFAULT NULL
)
RETURNS TABLE (
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
    next_due_at timestamptz,
    shared text
)
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
    _spare CONSTANT int := 16; -- channels to look at beyond the room of a group
    _now timestamptz;
    _token uuid := gen_random_uuid();
    _resting uuid[];
    _piled uuid[];
    _groups tid[];
    _chosen record;
    _next timestamptz;
    _shared text;
BEGIN
    IF NOT pg_try_advisory_xact_lock(claim_lock(p_workspace_id)) THEN
        PERFORM note_refused_claim(p_workspace_id);
        RETURN;
    END IF;
    PERFORM 1 FROM workspaces w WHERE w.workspace_id = p_workspace_id AND w.status = 'active';
    IF NOT FOUND THEN
        RETURN;
    END IF;

    _resting := ARRAY(
        SELECT c.channel_id
        FROM channels c
        WHERE c.workspace_id = p_workspace_id
          AND c.enabled
          AND c.paused_until <= coalesce(p_now, clock_timestamp())
          AND c.catch_up ->> 'policy' <> 'all'
    );
    IF _resting <> '{}' THEN
        _piled := lock_excess(p_workspace_id, _resting, coalesce(p_now, clock_timestamp()));
    END IF;

    _groups := lock_rate_groups(ARRAY[p_workspace_id], true);
    _now := coalesce(p_now, clock_timestamp()); -- read after the rate groups are locked
    IF _resting <> '{}' THEN
        PERFORM end_pauses(p_workspace_id, p_run_id, _resting, _piled, _now);
    END IF;

    _chosen := choose_deliveries(_groups, p_limit, p_limit, _spare, p_tolerance, _now);
    _next := next_due_at(p_workspace_id);
    PERFORM note_turns(ARRAY[p_workspace_id], _now);
    IF _chosen.places IS NULL THEN
        RETURN;
    END IF;
    _shared := claim_shared(_chosen.workspaces, _chosen.channels, _chosen.renderings);

    RETURN QUERY
    SELECT s.delivery_id, s.message_id, s.channel_id, s.rendering_id, s.attempt, _token, s.sending_lease_until,
           s.slot_at, s.render_meta, s.verify, s.trace_id, s.traceparent, s.created_at, _next,
           CASE WHEN s.turn = 1 THEN _shared END
    FROM start_sending(_chosen.places, _chosen.slots, _token, p_run_id, p_lease, _now) AS s;
END $$;
