-- channel_readiness() trigger on channels
--
-- Gives a new channel its rows in platform_limits, channel_due and channel_counters, and makes a channel whose
-- gates were changed due at once: the next claim looks at it and finds its true next time. So whoever pauses,
-- enables or re-rates a channel, by function or by hand, is heard on the next claim.
CREATE OR REPLACE FUNCTION channel_readiness()
RETURNS trigger
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
BEGIN
    INSERT INTO platform_limits (workspace_id, platform, rate_group)
    VALUES (NEW.workspace_id, NEW.platform, NEW.rate_group)
    ON CONFLICT DO NOTHING;

    IF TG_OP = 'INSERT' THEN
        INSERT INTO channel_counters (workspace_id, channel_id, side)
        VALUES (NEW.workspace_id, NEW.channel_id, 'started'), (NEW.workspace_id, NEW.channel_id, 'ended');
    END IF;

    INSERT INTO channel_due AS due (workspace_id, channel_id, platform, rate_group, next_due_at)
    VALUES (NEW.workspace_id, NEW.channel_id, NEW.platform, NEW.rate_group, clock_timestamp())
    ON CONFLICT (workspace_id, channel_id) DO UPDATE
    SET platform = excluded.platform,
        rate_group = excluded.rate_group,
        next_due_at = least(due.next_due_at, excluded.next_due_at),
        waits_for_place = false;
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER channel_readiness
    AFTER INSERT OR UPDATE OF platform, rate_group, enabled, rate_rps, max_parallel, paused_until,
        timezone, window_mode, posting_window ON channels
    FOR EACH ROW EXECUTE FUNCTION channel_readiness();
