-- take_reply_slots(workspace_id, chat_ids, lease_tokens, beside, missed, patience)
-- -> nth, slot_at, wait, taken, attempt: one row per call; none for a chat that is not the caller's
--
-- When a call for the reply of a chat may be made: the first of an attempt that has no slot yet, one that missed its
-- slot, a further part, or one beside the chat (a query, an answer to a pressed button). As take_slots does for posts, and
-- in the same rate group.
--
-- taken        the slot is this call's. The first slot of an attempt begins it: attempt is counted here
-- not taken    nothing is charged; ask again at slot_at. Further away than patience: give the chat back. So it is while
--              the workspace is paused or the platform does not answer
-- beside       the chat's own rate is neither waited for nor charged
-- missed       the slot that this call had and did not use: the chat is as open as it was for that slot
-- Changes      bot_outbox, bot_chats.next_allowed_at, platform_limits
-- Locks        platform_limits, bot_chats, bot_outbox: in that order, each by key
CREATE OR REPLACE FUNCTION take_reply_slots(
    p_workspace_id uuid,
    p_chat_ids text[],
    p_lease_tokens uuid[],
    p_beside boolean[],
    p_missed timestamptz[],
    p_patience interval DEFAULT '5 seconds'
)
RETURNS TABLE (nth bigint, slot_at timestamptz, wait interval, taken boolean, attempt int)
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
    _bot record;
    _chats text[];
    _now timestamptz;
BEGIN
    SELECT s.provider, s.rate_group, rate_step(s.chat_rps) AS chat_step, rate_step(g.rate_rps) AS step,
           g.next_allowed_at, g.circuit, g.trial, g.stalled_until, w.status = 'active' AND s.enabled AS is_on
    INTO _bot
    FROM bot_settings s
    JOIN workspaces w USING (workspace_id)
    JOIN platform_limits g
      ON g.workspace_id = s.workspace_id
     AND g.platform = s.provider
     AND g.rate_group = s.rate_group
    WHERE s.workspace_id = p_workspace_id
    FOR UPDATE OF g;
    _chats := lock_chats(p_workspace_id, p_chat_ids, p_lease_tokens);
    _now := clock_timestamp();

    RETURN QUERY
    WITH asked AS MATERIALIZED (
        SELECT c.nth, c.chat_id, c.beside, b.key, b.reply_id, b.slot_at AS begun_at, b.attempt,
               CASE WHEN c.beside THEN NULL
                    WHEN h.next_allowed_at = c.missed + _bot.chat_step THEN c.missed
                    ELSE h.next_allowed_at END AS gate
        FROM unnest(p_chat_ids, p_beside, p_missed) WITH ORDINALITY AS c (chat_id, beside, missed, nth)
        JOIN bot_chats h
          ON h.workspace_id = p_workspace_id
         AND h.chat_id = c.chat_id
        CROSS JOIN LATERAL (
            SELECT b.inbound_provider_message_id AS key, b.reply_id, b.slot_at, b.attempt
            FROM bot_outbox b
            WHERE b.workspace_id = p_workspace_id
              AND b.chat_id = c.chat_id
              AND b.sent_at IS NULL
              AND b.failed_at IS NULL
            ORDER BY b.place
            LIMIT 1
        ) AS b
        WHERE c.chat_id = ANY (_chats)
    ), placed AS MATERIALIZED (
        SELECT a.*, coalesce(a.gate <= greatest(_now, _bot.next_allowed_at), true) AS is_open,
               _bot.is_on AND (bot_may_take(_bot.circuit, _bot.trial, _bot.stalled_until, _now) > 0
                               OR (_bot.circuit = 'half' AND _bot.trial = a.reply_id)) AS may_send
        FROM asked a
    ), ranked AS MATERIALIZED (
        SELECT p.*, row_number() OVER (PARTITION BY p.is_open AND p.may_send ORDER BY p.nth) AS rank
        FROM placed p
    ), judged AS MATERIALIZED (
        SELECT r.*, s.slot,
               r.may_send AND r.is_open AND s.slot <= _now + p_patience
               AND (_bot.circuit <> 'half' OR r.rank = 1) AS is_taken
        FROM ranked r
        CROSS JOIN LATERAL (
            SELECT CASE
                WHEN NOT r.may_send OR (_bot.circuit = 'half' AND r.rank > 1)
                    THEN _now + p_patience + interval '1 second'
                WHEN r.is_open THEN greatest(_now, _bot.next_allowed_at) + (r.rank - 1) * _bot.step
                ELSE greatest(r.gate, _bot.next_allowed_at)
            END AS slot
        ) AS s
    ), begun AS (
        UPDATE bot_outbox b
        SET attempt = b.attempt + CASE WHEN j.begun_at IS NULL THEN 1 ELSE 0 END,
            slot_at = j.slot
        FROM judged j
        WHERE b.workspace_id = p_workspace_id
          AND b.chat_id = j.chat_id
          AND b.inbound_provider_message_id = j.key
          AND j.is_taken
    ), chats AS (
        UPDATE bot_chats c
        SET next_allowed_at = j.slot + _bot.chat_step
        FROM judged j
        WHERE c.workspace_id = p_workspace_id
          AND c.chat_id = j.chat_id
          AND j.is_taken
          AND NOT j.beside
    ), charged AS (
        UPDATE platform_limits g
        SET next_allowed_at = CASE WHEN _bot.step > interval '0' THEN l.last + _bot.step ELSE g.next_allowed_at END,
            trial = CASE WHEN _bot.circuit = 'half' THEN l.trial ELSE g.trial END,
            updated_at = _now
        FROM (
            SELECT max(j.slot) AS last, (array_agg(j.reply_id))[1] AS trial
            FROM judged j
            WHERE j.is_taken
        ) AS l
        WHERE g.workspace_id = p_workspace_id
          AND g.platform = _bot.provider
          AND g.rate_group = _bot.rate_group
          AND l.last IS NOT NULL
          AND (_bot.step > interval '0' OR _bot.circuit = 'half')
    )
    SELECT j.nth, j.slot, j.slot - _now, j.is_taken, j.attempt + CASE WHEN j.begun_at IS NULL AND j.is_taken THEN 1 ELSE 0 END
    FROM judged j
    ORDER BY j.nth;
END $$;
