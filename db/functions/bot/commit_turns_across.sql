-- commit_turns_across(turns, patience, behind, run_id) -> one verdict per turn, by its number from 1
--
-- commit_turns in many workspaces, as statements over all of them: each turn names its "workspace_id".
--
-- behind       workspaces in which the caller has replies that wait for slots: new ones do not overtake them
-- Fails        as a whole: the caller finds the turn that is to blame, and commits the others. Also when a row is held by
--              another transaction for half a second: the others must not wait for it
-- Steps        lock_reply_groups, lock_chats, judge_turns, assign_reply_slots, store_turns, settle_chats
-- Locks        as commit_turns, in the order of workspaces
CREATE OR REPLACE FUNCTION commit_turns_across(
    p_turns jsonb,
    p_patience interval DEFAULT '5 seconds',
    p_behind uuid[] DEFAULT '{}',
    p_run_id uuid DEFAULT NULL
)
RETURNS TABLE (
    nth bigint,
    verdict text,
    reply_id uuid,
    attempt int,
    slot_at timestamptz,
    wait interval,
    more boolean
)
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET lock_timeout = '500ms'
AS $$
#variable_conflict use_column
DECLARE
    _given decided_turn[];
    _turns decided_turn[];
    _now timestamptz;
    _calls record;
    _slots record;
    _more bigint[];
BEGIN
    SELECT array_agg((t.place, t.workspace_id, t.chat_id, t.lease_token, t.trace_id, t.traceparent, t.updates, t.next,
                      t.reply, t.escalation, NULL, NULL, NULL)::decided_turn)
    INTO _given
    FROM ROWS FROM (jsonb_to_recordset(p_turns) AS (
        workspace_id uuid, chat_id text, lease_token uuid, trace_id text, traceparent text, updates jsonb, next jsonb,
        reply jsonb, escalation jsonb
    )) WITH ORDINALITY AS t (
        workspace_id, chat_id, lease_token, trace_id, traceparent, updates, next, reply, escalation, place
    );
    PERFORM lock_reply_groups(ARRAY(SELECT t.workspace_id FROM unnest(_given) AS t WHERE t.reply IS NOT NULL));
    _turns := judge_turns(_given, lock_chats(
        ARRAY(SELECT t.workspace_id FROM unnest(_given) AS t), ARRAY(SELECT t.chat_id FROM unnest(_given) AS t),
        ARRAY(SELECT t.lease_token FROM unnest(_given) AS t)));
    _now := clock_timestamp();

    SELECT array_agg(t.workspace_id) AS workspaces, array_agg(t.chat_id) AS chats,
           array_agg(CASE WHEN t.reply_id IS NOT NULL THEN t.chat_id END) AS chats_with_reply,
           array_agg(t.reply_id) AS replies, array_agg(false) AS beside, array_agg(NULL::timestamptz) AS missed
    INTO _calls
    FROM unnest(_turns) AS t;
    _slots := assign_reply_slots(_calls.workspaces, _calls.chats_with_reply, _calls.replies, _calls.beside,
                                 _calls.missed, p_behind, p_patience, _now);
    PERFORM store_turns(_turns, _slots.slots, _slots.taken, _slots.kept, _slots.gates, p_run_id, _now);
    _more := settle_chats(_calls.workspaces, ARRAY(
        SELECT CASE WHEN NOT s.is_kept THEN s.chat_id END
        FROM unnest(_calls.chats, _slots.kept) WITH ORDINALITY AS s (chat_id, is_kept, nth)
        ORDER BY s.nth
    ));

    RETURN QUERY
    SELECT t.place,
           CASE
               WHEN t.is_answered THEN 'answered'
               WHEN t.reply_id IS NULL THEN 'silent'
               WHEN t.is_kept THEN 'committed'
               ELSE 'held'
           END,
           t.reply_id, CASE WHEN t.reply_id IS NOT NULL THEN t.is_taken::int END,
           CASE WHEN t.is_taken THEN t.slot END, t.slot - _now, t.nth = ANY (_more)
    FROM unnest(_turns, _slots.slots, _slots.taken, _slots.kept) WITH ORDINALITY AS t (
        place, workspace_id, chat_id, lease_token, trace_id, traceparent, updates, next, reply, escalation, provider,
        reply_id, is_answered, slot, is_taken, is_kept, nth
    )
    UNION ALL
    SELECT g.place, 'stale', NULL, NULL, NULL, NULL, false
    FROM unnest(_given) AS g
    WHERE g.place <> ALL (ARRAY(SELECT t.place FROM unnest(_turns) AS t));
END $$;
