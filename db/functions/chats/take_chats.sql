-- take_chats(workspace_id, limit, each, lease) -> the chats that the caller now has, with what is to be done in each
--
-- One worker at a time has a chat, for the time of its lease; the state is read under that lease. So updates of one chat
-- are handled one after the other, in their order, by any number of workers.
--
-- lease_token  fresh for each take: a worker that comes back after its lease is refused by every later call
-- state …      the conversation as it is now
-- reply        the oldest reply that is decided and has not ended; it goes before any update. {"key", "reply_id", "plan",
--              "progress", "attempt", "created_at", "maybe_sent", "sent_ids", trace}. maybe_sent: look for it in the chat
--              first; sent_ids are messages of other replies, which it is not
-- updates      else: the oldest unanswered ones, in the order of the provider
-- takes        how often they were taken since the last commit, this time included; a third time is poison. Of the chats
--              that were taken before, one is handed out at a time: else those that were lost together with a poisoned
--              one would be taken for poison, too
-- rules_seq    raised by each change of rules and settings: load them anew when it is not the one you have
-- Guarantees   nothing of a workspace that is paused or whose platform does not answer; of a half circuit one chat
-- Changes      bot_chats; a reply whose attempts are used up by workers that died -> failed
-- Appends      bot_reply_failed
-- Locks        bot_chats SKIP LOCKED, bot_outbox by key
-- Others       take_chats_across, for many workspaces at once
CREATE OR REPLACE FUNCTION take_chats(
    p_workspace_id uuid,
    p_limit int DEFAULT 50,
    p_each int DEFAULT 1,
    p_lease interval DEFAULT '30 seconds'
)
RETURNS TABLE (
    chat_id text,
    lease_token uuid,
    takes int,
    state text,
    context jsonb,
    expires_at timestamptz,
    newest_ms bigint,
    reply jsonb,
    updates jsonb,
    rules_seq bigint
)
LANGUAGE sql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT t.chat_id, t.lease_token, t.takes, t.state, t.context, t.expires_at, t.newest_ms, t.reply, t.updates,
           t.rules_seq
    FROM take_chats_across(ARRAY[p_workspace_id], ARRAY[p_limit], p_lease, p_each) AS t
$$;
