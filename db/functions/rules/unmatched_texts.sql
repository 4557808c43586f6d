-- unmatched_texts(workspace_id, since, limit) -> what customers write and no rule answers, the most frequent first
--
-- Lower-cased, without punctuation, and masked: # stands for a number, an address or a secret.
CREATE OR REPLACE FUNCTION unmatched_texts(p_workspace_id uuid, p_since timestamptz, p_limit int)
RETURNS TABLE (text text, times bigint, chats bigint, last_at timestamptz)
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT u.said, count(*), count(DISTINCT u.chat_id), max(u.ts)
    FROM (
        SELECT l.chat_id, l.ts,
               btrim(regexp_replace(
                   replace(lower(regexp_replace(
                       replace(redact(left(l.message_text, 300)), '***', '#'), '\d{3,}', '#', 'g')), 'ё', 'е'),
                   '[^[:alnum:]#]+', ' ', 'g')) AS said
        FROM bot_logs l
        WHERE l.workspace_id = p_workspace_id
          AND l.ts >= p_since
          AND l.matched_rule_id IS NULL
          AND (l.meta ->> 'outcome' = 'clarified'
               OR l.meta ->> 'outcome' = 'escalated' AND l.state_before = 'default')
    ) AS u
    GROUP BY u.said
    ORDER BY count(*) DESC, u.said
    LIMIT p_limit
$$;
