-- adopt_policy(max_attempts, backoff_base, backoff_cap, group_cooldown, probe_base, probe_cap)
-- -> the policy before, null when nothing changed
--
-- The configuration of a dispatcher becomes the policy of the whole installation. Every dispatcher calls this at start:
-- the last one that started with other values wins, for all of them at once.
--
-- Changes      delivery_policy. Deliveries that are already queued keep their max_attempts.
-- Raises       23514 (check_violation) for values out of range.
CREATE OR REPLACE FUNCTION adopt_policy(
    p_max_attempts int,
    p_backoff_base interval,
    p_backoff_cap interval,
    p_group_cooldown interval,
    p_probe_base interval DEFAULT '2 seconds',
    p_probe_cap interval DEFAULT '60 seconds'
)
RETURNS jsonb
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
DECLARE
    _before jsonb;
BEGIN
    SELECT jsonb_build_object('max_attempts', p.max_attempts, 'backoff_base', p.backoff_base,
                              'backoff_cap', p.backoff_cap, 'group_cooldown', p.group_cooldown,
                              'probe_base', p.probe_base, 'probe_cap', p.probe_cap)
    INTO _before
    FROM current_policy() AS p
    WHERE (p.max_attempts, p.backoff_base, p.backoff_cap, p.group_cooldown, p.probe_base, p.probe_cap)
          IS DISTINCT FROM
          (p_max_attempts, p_backoff_base, p_backoff_cap, p_group_cooldown, p_probe_base, p_probe_cap);
    IF _before IS NULL THEN
        RETURN NULL;
    END IF;

    INSERT INTO delivery_policy (max_attempts, backoff_base, backoff_cap, group_cooldown, probe_base, probe_cap)
    VALUES (p_max_attempts, p_backoff_base, p_backoff_cap, p_group_cooldown, p_probe_base, p_probe_cap)
    ON CONFLICT (is_the_only_one) DO UPDATE
    SET max_attempts = excluded.max_attempts,
        backoff_base = excluded.backoff_base,
        backoff_cap = excluded.backoff_cap,
        group_cooldown = excluded.group_cooldown,
        probe_base = excluded.probe_base,
        probe_cap = excluded.probe_cap,
        updated_at = now();
    RETURN _before;
END $$;
