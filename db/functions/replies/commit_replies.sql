-- commit_replies(workspace_id, outcomes, jitter, run_id) -> one verdict per outcome
--
-- Records how the sending of replies ended and gives their chats back.
--
-- outcomes     [{"chat_id", "lease_token", "result": "sent" | "failed" | "released", …}]
--              sent      provider_message_id, parts: the message ids of each part
--              failed    category, scope, code, message, retry_after_ms, ambiguous, answered
--              released  given back unsent, without a call: costs no attempt. retry_after_ms: when to look again
-- Verdicts     committed
--              stale     the token is not the current one: nothing is changed, the caller drops its result
-- more         there is more to do in the chat now
-- Changes      sent -> sent_at. TRANSIENT with attempts left -> retried after retry_delay; else -> failed_at. A customer
--              who has stopped the bot (chat_denied) marks the chat. The rate group's gate and circuit as after posts
-- Appends      bot_replied | bot_reply_failed, group_opened, group_closed
-- Locks        platform_limits (only when an outcome concerns it), bot_chats, bot_outbox: in that order, each by key
-- Raises       AP001 for an unknown result
-- Others       commit_replies_across, for many workspaces at once
CREATE OR REPLACE FUNCTION commit_replies(
    p_workspace_id uuid,
    p_outcomes jsonb,
    p_jitter double precision DEFAULT NULL,
    p_run_id uuid DEFAULT NULL
)
RETURNS TABLE (chat_id text, verdict text, seq bigint, failed boolean, more boolean)
LANGUAGE sql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT p_outcomes -> (c.nth - 1)::int ->> 'chat_id', c.verdict, c.seq, c.failed, c.more
    FROM commit_replies_across(
        (SELECT jsonb_agg(o || jsonb_build_object('workspace_id', p_workspace_id) ORDER BY nth)
         FROM jsonb_array_elements(p_outcomes) WITH ORDINALITY AS o (o, nth)),
        p_jitter, p_run_id) AS c
    ORDER BY c.nth
$$;
