-- refers_to_channels() trigger on platform_limits, after DELETE or a change of its key
--
-- A claim takes nothing for a channel whose rate group has no row, and nothing else would report it. The row is not
-- recreated either: its rate would be unknown, and without one it would have no limit.
--
-- Raises    foreign_key_violation while a channel is in this rate group
CREATE OR REPLACE FUNCTION refers_to_channels()
RETURNS trigger
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
BEGIN
    IF EXISTS (
        SELECT 1
        FROM channels c
        WHERE c.workspace_id = OLD.workspace_id
          AND c.platform = OLD.platform
          AND c.rate_group = OLD.rate_group
    ) AND NOT EXISTS (
        SELECT 1
        FROM platform_limits g
        WHERE g.workspace_id = OLD.workspace_id
          AND g.platform = OLD.platform
          AND g.rate_group = OLD.rate_group
    ) THEN
        RAISE EXCEPTION 'channels are in rate group % of %', OLD.rate_group, OLD.platform
            USING ERRCODE = 'foreign_key_violation',
                  HINT = 'change its rate_rps, or give the channels another rate_group first';
    END IF;
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER refers_to_channels
    AFTER DELETE OR UPDATE OF workspace_id, platform, rate_group ON platform_limits
    FOR EACH ROW EXECUTE FUNCTION refers_to_channels();
