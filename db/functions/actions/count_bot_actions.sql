-- count_bot_actions() -> how many actions of bots there are, by status
CREATE OR REPLACE FUNCTION count_bot_actions()
RETURNS TABLE (status text, actions bigint)
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT s.status, count(a.status)
    FROM unnest('{processing,done,error}'::text[]) AS s (status)
    LEFT JOIN bot_actions a ON a.status = s.status
    GROUP BY s.status
$$;
