-- slot_gate(next_allowed_at, rate_rps, now, tolerance) -> base, step, room
--
-- base   when the first free slot is; at most `tolerance` in the past, so an idle gate saves up no burst
-- step   the distance between two slots; 0 without a rate
-- room   how many slots may start by now; 0 while the gate (or a cooldown) is in the future
--
-- One row, as a table and STABLE, so that the planner inlines it.

CREATE OR REPLACE FUNCTION slot_gate(p_next_allowed_at timestamptz, p_rate_rps numeric, p_now timestamptz, p_tolerance interval)
RETURNS TABLE (base timestamptz, step interval, room bigint)
LANGUAGE sql
STABLE PARALLEL SAFE
AS $$
    SELECT b.base, b.step,
           CASE
               WHEN b.base > p_now THEN 0
               WHEN b.step = interval '0' THEN 1000000000
               ELSE 1 + floor(date_part('epoch', p_now - b.base) / date_part('epoch', b.step) + 1e-9)
           END::bigint
    FROM (
        SELECT CASE
                   WHEN p_next_allowed_at IS NULL THEN p_now
                   ELSE greatest(p_next_allowed_at, p_now - p_tolerance)
               END AS base,
               rate_step(p_rate_rps) AS step
    ) AS b
$$;
