-- grant_reply_slots(workspace_id, chat_ids, patience, now) -> the chats that stay with the caller
--
-- Begins the first attempts of replies: each in a slot of the rate group that posts with the same token use, one step
-- after the other, and in one of its chat.
--
-- granted      slot_at is set, attempt is 1
-- kept         no slot, but one is near: the rate of the chat comes first, and the group's slots until then belong to
--              others. The caller asks take_reply_slots
-- not kept     the workspace is paused, the platform does not answer, or the slot is further away than patience:
--              next_attempt_at says when to look again
-- Changes      bot_outbox, bot_chats.next_allowed_at, platform_limits
-- Locks        platform_limits and bot_chats are held by the caller; bot_outbox by key
CREATE OR REPLACE FUNCTION grant_reply_slots(
    p_workspace_id uuid,
    p_chat_ids text[],
    p_patience interval,
    p_now timestamptz
)
RETURNS text[]
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
    _bot record;
    _kept text[];
BEGIN
    IF p_chat_ids = '{}' THEN
        RETURN '{}';
    END IF;
    SELECT s.provider, s.rate_group, rate_step(s.chat_rps) AS chat_step, rate_step(g.rate_rps) AS step,
           greatest(p_now, g.next_allowed_at) AS base, g.circuit,
           CASE WHEN w.status = 'active' AND s.enabled
                THEN bot_may_take(g.circuit, g.trial, g.stalled_until, p_now) ELSE 0 END AS most
    INTO _bot
    FROM bot_settings s
    JOIN workspaces w USING (workspace_id)
    JOIN platform_limits g
      ON g.workspace_id = s.workspace_id
     AND g.platform = s.provider
     AND g.rate_group = s.rate_group
    WHERE s.workspace_id = p_workspace_id;

    WITH asked AS MATERIALIZED (
        SELECT c.chat_id, greatest(c.next_allowed_at, p_now) AS chat_gate, b.place, b.inbound_provider_message_id AS key,
               b.reply_id,
               c.next_allowed_at IS NULL
               OR c.next_allowed_at <= _bot.base AS is_open
        FROM bot_chats c
        CROSS JOIN LATERAL ( -- the reply that the turn has just made
            SELECT b.place, b.inbound_provider_message_id, b.reply_id
            FROM bot_outbox b
            WHERE b.workspace_id = p_workspace_id
              AND b.chat_id = c.chat_id
              AND b.sent_at IS NULL
              AND b.failed_at IS NULL
            ORDER BY b.place DESC
            LIMIT 1
        ) AS b
        WHERE c.workspace_id = p_workspace_id
          AND c.chat_id = ANY (p_chat_ids)
    ), placed AS MATERIALIZED (
        SELECT a.*, row_number() OVER (PARTITION BY a.is_open ORDER BY a.place) AS nth
        FROM asked a
    ), judged AS MATERIALIZED (
        SELECT p.*, s.slot,
               p.nth <= _bot.most AND p.is_open AND s.slot <= p_now + p_patience AS is_granted,
               p.nth <= _bot.most AND s.slot <= p_now + p_patience AS is_kept
        FROM placed p
        CROSS JOIN LATERAL (
            SELECT CASE WHEN p.is_open THEN _bot.base + (p.nth - 1) * _bot.step
                        ELSE greatest(p.chat_gate, _bot.base) END AS slot
        ) AS s
    ), outbox AS (
        UPDATE bot_outbox b
        SET slot_at = CASE WHEN j.is_granted THEN j.slot END,
            attempt = CASE WHEN j.is_granted THEN b.attempt + 1 ELSE b.attempt END,
            next_attempt_at = CASE WHEN j.is_kept OR _bot.most < 1 THEN b.next_attempt_at ELSE j.slot END
        FROM judged j
        WHERE b.workspace_id = p_workspace_id
          AND b.chat_id = j.chat_id
          AND b.inbound_provider_message_id = j.key
    ), chats AS (
        UPDATE bot_chats c
        SET next_allowed_at = j.slot + _bot.chat_step
        FROM judged j
        WHERE c.workspace_id = p_workspace_id
          AND c.chat_id = j.chat_id
          AND j.is_granted
    ), charged AS (
        UPDATE platform_limits g
        SET next_allowed_at = CASE WHEN _bot.step > interval '0' THEN l.last + _bot.step ELSE g.next_allowed_at END,
            trial = CASE WHEN _bot.circuit = 'half' THEN l.trial ELSE g.trial END,
            updated_at = p_now
        FROM (
            SELECT max(j.slot) AS last, (array_agg(j.reply_id))[1] AS trial
            FROM judged j
            WHERE j.is_granted
        ) AS l
        WHERE g.workspace_id = p_workspace_id
          AND g.platform = _bot.provider
          AND g.rate_group = _bot.rate_group
          AND l.last IS NOT NULL
          AND (_bot.step > interval '0' OR _bot.circuit = 'half')
    )
    SELECT coalesce(array_agg(j.chat_id), '{}') INTO _kept FROM judged j WHERE j.is_kept;
    RETURN _kept;
END $$;
