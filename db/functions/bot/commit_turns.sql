-- commit_turns(workspace_id, turns, patience, run_id) -> one verdict per turn
--
-- Records how updates were handled: the reply, the conversation, the log and the inbox in one transaction, before
-- anything is sent. All or nothing per turn, set-based for all of them.
--
-- turns        [{"chat_id", "lease_token", "updates": [{"key", "log": {…}}], "next": {"state", "context", "expires_in"},
--              "reply": {"key", "kind", "plan", "plan_hash", "response_hash"}, "escalation": {"code"}}]; expires_in in seconds,
--              next, reply and escalation may be null. "last" of several updates of a chat is the one with the reply
-- Verdicts     committed  the reply is the caller's to send: attempt has begun when slot_at is set; else others come first,
--                         or the chat's own rate: ask take_reply_slots, after `wait`
--              held       the reply waits, and the chat was given back: the workspace is paused, the platform does not
--                         answer, or the next slot is further away than patience
--              silent     there is no reply; the chat was given back
--              answered   the update has a reply already: nothing is sent; the chat was given back
--              stale      the token is not the current one, or an update is handled: nothing is changed
-- more         there is more to do in the chat now
-- Appends      bot_escalated
-- Locks        platform_limits, bot_chats, bot_inbox, bot_outbox, bot_state: in that order, each by key
-- Others       commit_turns_across, for many workspaces at once
CREATE OR REPLACE FUNCTION commit_turns(
    p_workspace_id uuid,
    p_turns jsonb,
    p_patience interval DEFAULT '5 seconds',
    p_run_id uuid DEFAULT NULL
)
RETURNS TABLE (chat_id text, verdict text, reply_id uuid, attempt int, slot_at timestamptz, wait interval, more boolean)
LANGUAGE sql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT p_turns -> (c.nth - 1)::int ->> 'chat_id', c.verdict, c.reply_id, c.attempt, c.slot_at, c.wait, c.more
    FROM commit_turns_across(
        (SELECT jsonb_agg(t || jsonb_build_object('workspace_id', p_workspace_id) ORDER BY nth)
         FROM jsonb_array_elements(p_turns) WITH ORDINALITY AS t (t, nth)),
        p_patience, '{}', p_run_id) AS c
    ORDER BY c.nth
$$;
