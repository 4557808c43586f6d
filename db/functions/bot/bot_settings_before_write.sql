-- bot_settings_before_write() trigger on bot_settings, before INSERT or a change of what a bot answers by
--
-- Makes the rate group when it is missing, with the platform's default rate, and raises rules_seq: see note_rules_changed.
--
-- Changes   platform_limits
CREATE OR REPLACE FUNCTION bot_settings_before_write()
RETURNS trigger
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
BEGIN
    -- Read first: ON CONFLICT waits for a transaction that moves the group's gate.
    INSERT INTO platform_limits (workspace_id, platform, rate_group)
    SELECT NEW.workspace_id, NEW.provider, NEW.rate_group
    WHERE NOT EXISTS (
        SELECT 1
        FROM platform_limits g
        WHERE g.workspace_id = NEW.workspace_id
          AND g.platform = NEW.provider
          AND g.rate_group = NEW.rate_group
    )
    ON CONFLICT DO NOTHING;
    IF TG_OP = 'UPDATE' THEN
        NEW.rules_seq := OLD.rules_seq + 1;
        NEW.updated_at := now();
    END IF;
    RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER bot_settings_before_insert
    BEFORE INSERT ON bot_settings
    FOR EACH ROW EXECUTE FUNCTION bot_settings_before_write();

CREATE OR REPLACE TRIGGER bot_settings_before_change
    BEFORE UPDATE OF provider, enabled, auth_ref, rate_group, chat_rps, chat_per_minute, state_ttl, max_turns, fallback,
        escalation, answer_in, gather, late_after, timezone, hours, texts, menu, cancel_words ON bot_settings
    FOR EACH ROW EXECUTE FUNCTION bot_settings_before_write();
