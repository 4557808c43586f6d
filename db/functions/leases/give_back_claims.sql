-- give_back_claims(workspace_id, run_id, known_tokens, younger_than) -> how many deliveries were given back
--
-- The response to a claim was lost, and the claim may have happened. Its worker never got those deliveries, so
-- certainly nothing was sent: they are due again at once, not ambiguous when their lease has expired.
--
-- run_id         of the calling worker; claims of others are not touched
-- known_tokens   of its claims in this workspace that it knows of
-- younger_than   when the lost claim was requested, at the earliest
-- Changes        sending -> retry, as commit_deliveries does for released outcomes
-- Appends        retry_scheduled
CREATE OR REPLACE FUNCTION give_back_claims(
    p_workspace_id uuid,
    p_run_id uuid,
    p_known_tokens uuid[],
    p_younger_than interval
)
RETURNS int
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
DECLARE
    _outcomes jsonb;
BEGIN
    SELECT jsonb_agg(jsonb_build_object(
               'delivery_id', d.delivery_id, 'claim_token', d.claim_token, 'result', 'released'))
    INTO _outcomes
    FROM (SELECT t.delivery_id FROM taken_deliveries(p_workspace_id) AS t WHERE t.status = 'sending') AS t
    CROSS JOIN LATERAL ( -- each by key, whatever the planner estimates
        SELECT d.delivery_id, d.claim_token, d.attempt
        FROM deliveries d
        WHERE d.workspace_id = p_workspace_id
          AND d.delivery_id = t.delivery_id
          AND d.status = 'sending'
          AND d.claim_token <> ALL (p_known_tokens)
          AND d.sending_started_at > clock_timestamp() - p_younger_than
          AND d.sending_lease_until > clock_timestamp() -- an expired one is ambiguous: the monitor decides
        OFFSET 0
    ) AS d
    WHERE EXISTS (
          SELECT 1
          FROM (
              SELECT e.workspace_id, e.ts, e.action, e.attempt, e.meta
              FROM events e
              WHERE e.delivery_id = d.delivery_id
              OFFSET 0
          ) AS e
          WHERE e.workspace_id = p_workspace_id
            AND e.ts > clock_timestamp() - p_younger_than
            AND e.action = 'send_attempt'
            AND e.attempt = d.attempt
            AND e.meta ->> 'run_id' = p_run_id::text
      );
    IF _outcomes IS NULL THEN
        RETURN 0;
    END IF;
    RETURN (
        SELECT count(*) FILTER (WHERE c.verdict = 'committed')
        FROM commit_deliveries(p_workspace_id, _outcomes, p_run_id => p_run_id) AS c
    );
END $$;
