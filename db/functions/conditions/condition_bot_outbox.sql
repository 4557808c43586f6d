-- condition_bot_outbox(older_than)
-- -> the workspaces with replies of the bot that were decided longer ago and are not sent
--
-- found: how many (stuck_bot_replies). causes contain no chat: its number is personal data.
CREATE OR REPLACE FUNCTION condition_bot_outbox(p_older_than interval)
RETURNS TABLE (workspace_id uuid, found bigint, since timestamptz, causes jsonb)
LANGUAGE sql
STABLE
AS $$
    SELECT b.workspace_id, sum(b.replies)::bigint, min(b.since),
           jsonb_path_query_array(
               jsonb_agg(jsonb_strip_nulls(jsonb_build_object('name', 'reply', 'code', b.code, 'count', b.replies))
                         ORDER BY b.replies DESC, b.code), '$[0 to 4]')
    FROM (
        SELECT r.workspace_id, r.code, count(*) AS replies, min(r.since) AS since
        FROM stuck_bot_replies(p_older_than) AS r
        GROUP BY r.workspace_id, r.code
    ) AS b
    GROUP BY b.workspace_id
$$;
