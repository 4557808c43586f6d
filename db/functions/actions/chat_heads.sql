-- chat_heads(workspace_ids, chat_ids) -> the number of the last change of each of these chats, in their order
CREATE OR REPLACE FUNCTION chat_heads(p_workspace_ids uuid[], p_chat_ids text[])
RETURNS bigint[]
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT coalesce(array_agg(coalesce(c.seq, 0) ORDER BY p.nth), '{}')
    FROM unnest(p_workspace_ids, p_chat_ids) WITH ORDINALITY AS p (workspace_id, chat_id, nth)
    LEFT JOIN bot_chats c
      ON c.workspace_id = p.workspace_id
     AND c.chat_id = p.chat_id
$$;
