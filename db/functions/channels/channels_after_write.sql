-- channels_after_write() trigger on channels
--
-- Gives a new channel its rows in platform_limits (with the table's default rate), channel_due and channel_counters.
-- Makes a channel due at once when its gates may have opened: the next claim looks at it and stores its true next time.
-- So a resume, an enable or a new rate takes effect with the next claim, also when it was written by hand.
--
-- A pause or a disable alone writes nothing here: the next claim finds the gates closed. So a commit that penalises a
-- channel does not lock channel_due, which others lock after the counters.
CREATE OR REPLACE FUNCTION channels_after_write()
RETURNS trigger
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
BEGIN
    -- Read first: ON CONFLICT waits for a transaction that moves the group's gate, and that one may wait for this one.
    INSERT INTO platform_limits (workspace_id, platform, rate_group)
    SELECT NEW.workspace_id, NEW.platform, NEW.rate_group
    WHERE NOT EXISTS (
        SELECT 1
        FROM platform_limits g
        WHERE g.workspace_id = NEW.workspace_id
          AND g.platform = NEW.platform
          AND g.rate_group = NEW.rate_group
    )
    ON CONFLICT DO NOTHING;

    IF TG_OP = 'INSERT' THEN
        INSERT INTO channel_counters (workspace_id, channel_id, side)
        VALUES (NEW.workspace_id, NEW.channel_id, 'started'), (NEW.workspace_id, NEW.channel_id, 'ended');
    END IF;

    INSERT INTO channel_due AS due (workspace_id, channel_id, platform, rate_group, max_parallel, next_due_at)
    VALUES (NEW.workspace_id, NEW.channel_id, NEW.platform, NEW.rate_group, NEW.max_parallel, clock_timestamp())
    ON CONFLICT (workspace_id, channel_id) DO UPDATE
    SET platform = excluded.platform,
        rate_group = excluded.rate_group,
        max_parallel = excluded.max_parallel,
        next_due_at = least(due.next_due_at, excluded.next_due_at),
        waits_for_place = false;
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER channels_after_write
    AFTER INSERT ON channels
    FOR EACH ROW EXECUTE FUNCTION channels_after_write();

CREATE OR REPLACE TRIGGER channel_opened
    AFTER UPDATE OF platform, rate_group, enabled, rate_rps, max_parallel, paused_until,
        timezone, window_mode, posting_window ON channels
    FOR EACH ROW
    WHEN ((NEW.enabled AND NOT OLD.enabled)
          OR coalesce(NEW.paused_until, '-infinity') < coalesce(OLD.paused_until, '-infinity')
          OR (NEW.platform, NEW.rate_group, NEW.rate_rps, NEW.max_parallel, NEW.timezone, NEW.window_mode,
              NEW.posting_window)
             IS DISTINCT FROM
             (OLD.platform, OLD.rate_group, OLD.rate_rps, OLD.max_parallel, OLD.timezone, OLD.window_mode,
              OLD.posting_window))
    EXECUTE FUNCTION channels_after_write();
