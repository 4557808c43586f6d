-- cool_groups(workspace_id, outcomes, places, now)
--
-- Moves the gates of rate groups for which decided outcomes demand a wait: by the wait that the provider named, else by
-- group_cooldown of current_policy, and by a day at most. A group waits after a failure with scope platform that names
-- a wait or is PERMANENT, and in a storm: see decide_outcomes.
--
-- places    of the groups that lock_gates has locked; no other group is written
-- Changes   platform_limits
-- Locks     platform_limits: held by the caller
CREATE OR REPLACE FUNCTION cool_groups(
    p_workspace_id uuid,
    p_outcomes decided_outcome[],
    p_places tid[],
    p_now timestamptz
)
RETURNS void
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
DECLARE
    _cooldown interval := (SELECT p.group_cooldown FROM current_policy() AS p);
BEGIN
    UPDATE platform_limits g
    SET next_allowed_at = greatest(g.next_allowed_at, w.until),
        updated_at = p_now
    FROM (
        SELECT o.platform, o.rate_group,
               p_now + least(max(greatest(
                   CASE WHEN o.asks THEN coalesce(make_interval(secs => o.retry_after_ms / 1000.0), _cooldown) END,
                   CASE WHEN o.in_storm THEN _cooldown END)), interval '1 day') AS until
        FROM (
            SELECT o.*, o.scope = 'platform' AND (o.retry_after_ms IS NOT NULL OR o.category = 'PERMANENT') AS asks
            FROM unnest(p_outcomes) AS o
            WHERE o.status IS NOT NULL
        ) AS o
        WHERE o.asks OR o.in_storm
        GROUP BY o.platform, o.rate_group
    ) AS w
    WHERE g.workspace_id = p_workspace_id
      AND g.platform = w.platform
      AND g.rate_group = w.rate_group
      AND g.ctid = ANY (p_places);
END $$;
