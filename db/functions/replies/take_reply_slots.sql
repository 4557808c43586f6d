-- take_reply_slots(workspace_ids, chat_ids, lease_tokens, beside, missed, patience)
-- -> nth, slot_at, wait, taken, attempt: one row per call; none for a chat that is not the caller's
--
-- When a call for the reply of a chat may be made: the first of an attempt that has no slot yet, one that missed its
-- slot, a further part, or one beside the chat (a query, an answer to a pressed button). As take_slots does for posts, in
-- the same rate groups, and by the rule of assign_reply_slots. The arrays go row by row, of any workspaces.
--
-- taken        the slot is this call's. The first slot of an attempt begins it: attempt is counted here
-- not taken    nothing is charged; ask again at slot_at. Further away than patience: give the chat back. So it is while
--              the workspace is paused or the platform does not answer
-- beside       the chat's own rate is neither waited for nor charged
-- missed       the slot that this call had and did not use: the chat is as open as it was for that slot
-- Changes      bot_outbox, bot_chats.next_allowed_at, platform_limits
-- Locks        platform_limits, bot_chats, bot_outbox: in that order, each by key
-- Fails        when one of them is held by another transaction for half a second: the others must not wait for it
CREATE OR REPLACE FUNCTION take_reply_slots(
    p_workspace_ids uuid[],
    p_chat_ids text[],
    p_lease_tokens uuid[],
    p_beside boolean[],
    p_missed timestamptz[],
    p_patience interval DEFAULT '5 seconds'
)
RETURNS TABLE (nth bigint, slot_at timestamptz, wait interval, taken boolean, attempt int)
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET lock_timeout = '500ms'
AS $$
#variable_conflict use_column
DECLARE
    _ours bigint[];
    _now timestamptz;
    _replies record;
    _slots record;
BEGIN
    PERFORM lock_reply_groups(p_workspace_ids);
    _ours := lock_chats(p_workspace_ids, p_chat_ids, p_lease_tokens);
    _now := clock_timestamp();

    SELECT array_agg(c.nth) AS nths, array_agg(c.workspace_id) AS workspaces, array_agg(c.chat_id) AS chats,
           array_agg(c.beside) AS beside, array_agg(c.missed) AS missed, array_agg(b.row_place) AS row_places,
           array_agg(b.reply_id) AS replies, array_agg(b.slot_at IS NULL) AS are_new, array_agg(b.attempt) AS attempts
    INTO _replies
    FROM unnest(p_workspace_ids, p_chat_ids, p_beside, p_missed) WITH ORDINALITY
        AS c (workspace_id, chat_id, beside, missed, nth)
    CROSS JOIN LATERAL (
        SELECT b.ctid AS row_place, b.reply_id, b.slot_at, b.attempt
        FROM bot_outbox b
        WHERE b.workspace_id = c.workspace_id
          AND b.chat_id = c.chat_id
          AND b.sent_at IS NULL
          AND b.failed_at IS NULL
        ORDER BY b.place
        LIMIT 1
    ) AS b
    WHERE c.nth = ANY (_ours);
    IF _replies.nths IS NULL THEN
        RETURN;
    END IF;
    _slots := assign_reply_slots(_replies.workspaces, _replies.chats, _replies.replies, _replies.beside,
                                 _replies.missed, '{}', p_patience, _now);

    RETURN QUERY
    WITH judged AS MATERIALIZED (
        SELECT j.*, h.chat_place
        FROM unnest(_replies.nths, _replies.workspaces, _replies.chats, _replies.row_places, _replies.are_new,
                    _replies.attempts, _slots.slots, _slots.taken, _slots.gates)
            AS j (nth, workspace_id, chat_id, row_place, is_new, attempt, slot, is_taken, gate)
        CROSS JOIN LATERAL ( -- each by key, whatever the planner estimates
            SELECT h.ctid AS chat_place
            FROM bot_chats h
            WHERE h.workspace_id = j.workspace_id
              AND h.chat_id = j.chat_id
            OFFSET 0
        ) AS h
    ), begun AS (
        UPDATE bot_outbox b
        SET attempt = b.attempt + j.is_new::int,
            slot_at = j.slot
        FROM judged j
        WHERE b.ctid = CASE WHEN j.is_taken THEN j.row_place END
    ), chats AS (
        UPDATE bot_chats c
        SET next_allowed_at = j.gate
        FROM judged j
        WHERE c.ctid = CASE WHEN j.gate IS NOT NULL THEN j.chat_place END
    )
    SELECT j.nth, s.at, s.at - _now, j.is_taken, j.attempt + (j.is_new AND j.is_taken)::int
    FROM judged j
    CROSS JOIN LATERAL (SELECT coalesce(j.slot, _now + p_patience + interval '1 second') AS at) AS s
    ORDER BY j.nth;
END $$;
