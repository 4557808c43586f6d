-- assign_reply_slots(workspace_ids, chat_ids, reply_ids, beside, missed, behind, patience, now)
-- -> slots, taken, kept, gates
--
-- When calls of bots may be made, by the rates of their chats and of the rate groups that posts with the same tokens use.
-- The one place with this rule. The arrays go row by row, one row per call, of any workspaces; so do the answers. A null
-- chat is no call.
--
-- A reply waits for its slot as a post does: nothing is reserved, except for 30 ms, so that of two that want a slot one
-- knows that it has it. Where posts are due too, the slots go in turns: after a reply the next slot is left to the posts
-- for 25 ms, and after a post to the replies. One turn is one slot, or as many as there are in 30 ms.
--
-- reply_ids    null: a call that belongs to no reply; it is never the trial of a half circuit
-- beside       the chat's own rate is neither waited for nor charged
-- missed       the slot that this call had and did not use: the chat is as open as it was for that slot
-- behind       workspaces in which the caller has replies that wait longer: their turn comes first
-- taken        the slot is this call's
-- slots        if taken the slot; else when to ask again. Null: nothing may be sent, because the workspace is paused, the
--              bot is off, or the platform does not answer
-- kept         the slot is taken, or comes within `patience`
-- gates        when the chat opens again; null where it does not change. The caller writes it
-- Changes      platform_limits
-- Locks        platform_limits and bot_chats: held by the caller
CREATE OR REPLACE FUNCTION assign_reply_slots(
    p_workspace_ids uuid[],
    p_chat_ids text[],
    p_reply_ids uuid[],
    p_beside boolean[],
    p_missed timestamptz[],
    p_behind uuid[],
    p_patience interval,
    p_now timestamptz,
    OUT slots timestamptz[],
    OUT taken boolean[],
    OUT kept boolean[],
    OUT gates timestamptz[]
)
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
    _ahead CONSTANT interval := '30 milliseconds';
    _left_to_posts CONSTANT interval := '25 milliseconds';
BEGIN
    WITH groups AS MATERIALIZED (
        SELECT k.workspace_id, g.*, greatest(p_now, g.gate) AS base,
               g.is_after_reply AND g.posts_wait AS is_turn_of_posts,
               CASE WHEN g.posts_wait
                    THEN greatest(1, floor(date_part('epoch', _ahead) / date_part('epoch', g.step))) END AS most_in_turn
        FROM (
            SELECT DISTINCT p.workspace_id
            FROM unnest(p_workspace_ids, p_chat_ids) AS p (workspace_id, chat_id)
            WHERE p.chat_id IS NOT NULL
        ) AS k
        CROSS JOIN LATERAL ( -- each by key, whatever the planner estimates
            SELECT g.ctid AS place, g.next_allowed_at AS gate, g.circuit, g.trial, r.step,
                   rate_step(s.chat_rps) AS chat_step,
                   coalesce(g.next_allowed_at = g.reply_gate, false) AS is_after_reply,
                   r.step > interval '0' AND EXISTS (
                       SELECT 1
                       FROM channel_due d
                       WHERE d.workspace_id = g.workspace_id
                         AND d.platform = g.platform
                         AND d.rate_group = g.rate_group
                         AND d.next_due_at <= greatest(p_now, g.next_allowed_at)
                         AND d.next_due_at < 'infinity'
                   ) AS posts_wait,
                   CASE WHEN w.status = 'active' AND s.enabled
                        THEN bot_may_take(g.circuit, g.trial, g.stalled_until, p_now) ELSE 0 END AS most
            FROM bot_settings s
            JOIN workspaces w USING (workspace_id)
            JOIN platform_limits g
              ON g.workspace_id = s.workspace_id
             AND g.platform = s.provider
             AND g.rate_group = s.rate_group
            CROSS JOIN LATERAL (SELECT rate_step(g.rate_rps) AS step) AS r
            WHERE s.workspace_id = k.workspace_id
            OFFSET 0
        ) AS g
    ), calls AS MATERIALIZED (
        SELECT c.nth, c.workspace_id, c.reply_id, c.beside, h.gate, c.missed
        FROM unnest(p_workspace_ids, p_chat_ids, p_reply_ids, p_beside, p_missed) WITH ORDINALITY
            AS c (workspace_id, chat_id, reply_id, beside, missed, nth)
        CROSS JOIN LATERAL (
            SELECT h.next_allowed_at AS gate
            FROM bot_chats h
            WHERE h.workspace_id = c.workspace_id
              AND h.chat_id = c.chat_id
            OFFSET 0
        ) AS h
    ), placed AS MATERIALIZED (
        SELECT c.nth, c.reply_id, c.beside, g.*, t.gate AS chat_gate,
               coalesce(t.gate <= g.base, true) AS is_open,
               CASE WHEN g.circuit = 'closed' THEN g.most > 0
                    ELSE c.reply_id IS NOT NULL AND (g.most > 0 OR g.circuit = 'half' AND g.trial = c.reply_id)
               END AS may_send
        FROM calls c
        JOIN groups g USING (workspace_id)
        CROSS JOIN LATERAL (
            SELECT CASE WHEN c.beside THEN NULL
                        WHEN c.gate = c.missed + g.chat_step THEN c.missed
                        ELSE c.gate END AS gate
        ) AS t
    ), ranked AS MATERIALIZED (
        SELECT p.*, row_number() OVER (PARTITION BY p.workspace_id, p.is_open AND p.may_send ORDER BY p.nth) AS rank
        FROM placed p
    ), judged AS MATERIALIZED (
        SELECT r.nth, r.workspace_id, r.place, r.step, r.circuit, r.reply_id, a.may_send, t.is_taken,
               CASE
                   WHEN NOT a.may_send THEN NULL
                   WHEN t.is_taken THEN s.slot
                   WHEN NOT r.is_open THEN greatest(r.chat_gate, r.base)
                   ELSE greatest(p_now + interval '1 millisecond',
                                 CASE WHEN r.is_turn_of_posts THEN r.gate + _left_to_posts ELSE r.base - _ahead END
                                 + (r.rank - 1) * r.step * CASE WHEN r.posts_wait THEN 2 ELSE 1 END)
               END AS slot,
               CASE WHEN t.is_taken AND NOT r.beside THEN s.slot + r.chat_step END AS opens_at
        FROM ranked r
        CROSS JOIN LATERAL (SELECT r.may_send AND (r.circuit <> 'half' OR r.rank = 1) AS may_send) AS a
        CROSS JOIN LATERAL (SELECT r.base + (r.rank - 1) * r.step AS slot) AS s
        CROSS JOIN LATERAL (
            SELECT a.may_send AND r.is_open AND s.slot <= p_now + _ahead
                   AND r.workspace_id <> ALL (p_behind)
                   AND (r.rank > r.most_in_turn) IS NOT TRUE
                   AND NOT (r.is_turn_of_posts AND p_now < r.gate + _left_to_posts) AS is_taken
        ) AS t
    ), charged AS (
        UPDATE platform_limits g
        SET next_allowed_at = CASE WHEN l.step > interval '0' THEN l.last + l.step ELSE g.next_allowed_at END,
            reply_gate = CASE WHEN l.step > interval '0' THEN l.last + l.step ELSE g.reply_gate END,
            trial = CASE WHEN l.circuit = 'half' THEN l.trial ELSE g.trial END,
            updated_at = p_now
        FROM (
            SELECT j.place, j.step, j.circuit, max(j.slot) AS last, (array_agg(j.reply_id))[1] AS trial
            FROM judged j
            WHERE j.is_taken
            GROUP BY j.place, j.step, j.circuit
        ) AS l
        WHERE g.ctid = l.place
          AND (l.step > interval '0' OR l.circuit = 'half')
    )
    SELECT array_agg(j.slot ORDER BY n), array_agg(coalesce(j.is_taken, false) ORDER BY n),
           array_agg(coalesce(j.may_send AND (j.is_taken OR j.slot <= p_now + p_patience), false) ORDER BY n),
           array_agg(j.opens_at ORDER BY n)
    INTO slots, taken, kept, gates
    FROM generate_series(1, cardinality(p_chat_ids)) AS n
    LEFT JOIN judged j ON j.nth = n;
END $$;
