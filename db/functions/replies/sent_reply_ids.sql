-- sent_reply_ids(workspace_id, chat_id) -> the ids of the messages that replies of this chat became lately
--
-- The same answer given twice is the same text. So a reply that is looked for is none of these.
CREATE OR REPLACE FUNCTION sent_reply_ids(p_workspace_id uuid, p_chat_id text)
RETURNS jsonb
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT coalesce(jsonb_agg(DISTINCT p.id), '[]')
    FROM (
        SELECT b.response -> 'progress' AS progress, b.provider_message_id
        FROM bot_outbox b
        WHERE b.workspace_id = p_workspace_id
          AND b.chat_id = p_chat_id
          AND b.sent_at > clock_timestamp() - interval '2 days'
        ORDER BY b.place DESC
        LIMIT 1000
    ) AS b
    CROSS JOIN LATERAL (
        SELECT b.provider_message_id AS id
        WHERE b.provider_message_id IS NOT NULL
        UNION ALL
        SELECT part.id
        FROM jsonb_array_elements(coalesce(b.progress, '[]')) AS parts (ids)
        CROSS JOIN LATERAL jsonb_array_elements_text(parts.ids) AS part (id)
    ) AS p
$$;
