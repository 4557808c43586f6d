-- judge_turns(turns, locked) -> the turns that count, with what their updates have already
--
-- For commit_turns_across, under the locks of the chats: a turn of which an update is handled, or is not there, is left
-- out. It writes nothing.
--
-- locked    the numbers (place) of the turns whose chats the caller holds
CREATE OR REPLACE FUNCTION judge_turns(p_turns decided_turn[], p_locked bigint[])
RETURNS decided_turn[]
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET enable_bitmapscan = off
AS $$
BEGIN
    RETURN (
        SELECT coalesce(array_agg((
                   t.place, t.workspace_id, t.chat_id, t.lease_token, t.trace_id, t.traceparent, t.updates, t.next,
                   t.reply, t.escalation, s.provider,
                   CASE WHEN t.reply IS NOT NULL AND a.is_answered IS NULL THEN new_id() END, a.is_answered IS TRUE
               )::decided_turn), '{}')
        FROM unnest(p_turns) AS t
        CROSS JOIN LATERAL ( -- each by key, whatever the planner estimates
            SELECT s.provider
            FROM bot_settings s
            WHERE s.workspace_id = t.workspace_id
            OFFSET 0
        ) AS s
        LEFT JOIN LATERAL (
            SELECT true AS is_answered
            FROM bot_outbox b
            WHERE b.workspace_id = t.workspace_id
              AND b.chat_id = t.chat_id
              AND b.inbound_provider_message_id = t.reply ->> 'key'
            OFFSET 0
        ) AS a ON true
        WHERE t.place = ANY (p_locked)
          AND (
              SELECT bool_and(i.is_there IS TRUE)
              FROM jsonb_array_elements(t.updates) AS u
              LEFT JOIN LATERAL (
                  SELECT true AS is_there
                  FROM bot_inbox i
                  WHERE i.workspace_id = t.workspace_id
                    AND i.provider = s.provider
                    AND i.chat_id = t.chat_id
                    AND i.provider_message_id = u ->> 'key'
                    AND i.processed_at IS NULL
                  OFFSET 0
              ) AS i ON true
          )
    );
END $$;
