-- token_storms(workspace_id, channel_ids, codes, now) -> the rate groups whose credential fails everywhere
--
-- channel_ids and codes are the channels that fail permanently now, and the codes. A group is in a storm when, with the
-- failures of the last minute, at least three of its channels got the same refusal of their credential: then the
-- account is the cause, and a penalty for each channel would only disable them all.
--
-- Cost      the failures of the last minute
CREATE OR REPLACE FUNCTION token_storms(p_workspace_id uuid, p_channel_ids uuid[], p_codes text[], p_now timestamptz)
RETURNS TABLE (platform text, rate_group text, code text)
LANGUAGE plpgsql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT c.platform, c.rate_group, f.code
    FROM (
        SELECT g.channel_id, g.code
        FROM unnest(p_channel_ids, p_codes) AS g (channel_id, code)
        UNION
        SELECT e.channel_id, e.error ->> 'code'
        FROM events e
        WHERE e.workspace_id = p_workspace_id
          AND e.ts > p_now - interval '1 minute'
          AND e.result = 'error'
          AND e.action = 'failed_permanent'
          AND e.error ->> 'code' = ANY (p_codes)
    ) AS f
    JOIN channels c
      ON c.workspace_id = p_workspace_id
     AND c.channel_id = f.channel_id
    WHERE is_token_code(f.code)
    GROUP BY c.platform, c.rate_group, f.code
    HAVING count(DISTINCT f.channel_id) >= 3;
END $$;
