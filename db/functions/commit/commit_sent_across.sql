-- commit_sent_across(workspace_ids, delivery_ids, claim_tokens, provider_message_ids, run_id)
-- -> the numbers of the outcomes that are left, and where another claim becomes worthwhile
--
-- commit_sent in many workspaces at once, for few outcomes in each: its fixed cost is paid once. The arrays go row by
-- row. A workspace with a streak to reset or a circuit in doubt is left to commit_deliveries, the others are not.
--
-- unsettled          not committed, as in commit_sent
-- workspaces, dues   row by row: the workspaces in which one of these channels has more to send, and the seconds until
--                    it can be claimed; null for none. What else waits there, the last claim has told (due_times)
-- Changes            sending -> sent
-- Appends            sent
-- Locks              deliveries by workspace_id and delivery_id
-- Fails              when one of them is held by another transaction for 200 ms: the others must not wait for it
CREATE OR REPLACE FUNCTION commit_sent_across(
    p_workspace_ids uuid[],
    p_delivery_ids uuid[],
    p_claim_tokens uuid[],
    p_provider_message_ids text[],
    p_run_id uuid DEFAULT NULL,
    OUT unsettled int[],
    OUT workspaces uuid[],
    OUT dues double precision[]
)
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET lock_timeout = '200ms'
AS $$
DECLARE
    _now timestamptz;
    _drawn text := new_id();
    _first_id bigint := id_start(_drawn);
    _ids text := left(_drawn, 24);
    _in_doubt uuid[];
    _settled int[];
    _channels_in uuid[];
    _channels uuid[];
BEGIN
    SELECT array_agg(w.workspace_id)
    INTO _in_doubt
    FROM (SELECT DISTINCT unnest(p_workspace_ids) AS workspace_id) AS w
    WHERE w.workspace_id IN (SELECT circuits_in_doubt(p_workspace_ids))
       OR EXISTS (SELECT 1 FROM channels c WHERE c.workspace_id = w.workspace_id AND c.error_streak > 0);
    _now := clock_timestamp();

    -- Found by key and written by place (ctid) under one snapshot: a join by key would be planned for the size that the
    -- table had when the plan was made. One that another transaction moves meanwhile is left, and so is the second of
    -- two outcomes for one claim. The claim is asked for again, of the row as it is when it is written.
    WITH moved AS (
        UPDATE deliveries d
        SET status = 'sent',
            sent_at = _now,
            provider_message_id = coalesce(o.provider_message_id, d.provider_message_id),
            next_retry_at = NULL,
            hold_reason = NULL,
            claimed_at = NULL,
            claim_token = NULL,
            sending_started_at = NULL,
            sending_lease_until = NULL,
            event_count = d.event_count + 1,
            updated_at = _now
        FROM (
            SELECT k.place, g.claim_token, g.provider_message_id, g.nth
            FROM (
                SELECT *
                FROM unnest(p_workspace_ids, p_delivery_ids, p_claim_tokens, p_provider_message_ids)
                    WITH ORDINALITY AS u (workspace_id, delivery_id, claim_token, provider_message_id, nth)
                WHERE (u.workspace_id = ANY (_in_doubt)) IS NOT TRUE
                ORDER BY u.workspace_id, u.delivery_id, u.nth
            ) AS g
            CROSS JOIN LATERAL (
                SELECT d.ctid AS place
                FROM deliveries d
                WHERE d.workspace_id = g.workspace_id
                  AND d.delivery_id = g.delivery_id
                OFFSET 0
            ) AS k
        ) AS o
        WHERE d.ctid = o.place
          AND d.claim_token = o.claim_token
          AND d.status = 'sending'
        RETURNING o.nth, d.workspace_id, d.delivery_id, d.message_id, d.channel_id, d.attempt, d.trace_id,
                  o.provider_message_id
    ), told AS (
        INSERT INTO events (id, workspace_id, delivery_id, message_id, channel_id, action, attempt, meta)
        SELECT id_in(_ids, _first_id + m.nth), m.workspace_id, m.delivery_id, m.message_id, m.channel_id, 'sent',
               m.attempt, sent_meta(m.trace_id, p_run_id, m.delivery_id, m.provider_message_id)
        FROM moved m
    )
    SELECT array_agg(m.nth), array_agg(m.workspace_id), array_agg(m.channel_id)
    INTO _settled, _channels_in, _channels
    FROM moved m;

    unsettled := CASE WHEN cardinality(_settled) = cardinality(p_delivery_ids) THEN '{}' ELSE ARRAY(
        SELECT n FROM generate_subscripts(p_delivery_ids, 1) AS n
        EXCEPT
        SELECT unnest(_settled)
        ORDER BY 1
    ) END;
    -- Its own channels only: what else waits there, the last claim has told. But a rate group may be closed.
    WITH own AS MATERIALIZED (
        SELECT d.workspace_id, min(d.next_due_at) AS due
        FROM unnest(_channels_in, _channels) AS c (workspace_id, channel_id)
        CROSS JOIN LATERAL ( -- each by key, whatever the planner estimates
            SELECT d.workspace_id, d.next_due_at
            FROM channel_due d
            WHERE d.workspace_id = c.workspace_id
              AND d.channel_id = c.channel_id
              AND d.next_due_at < 'infinity'
            OFFSET 0
        ) AS d
        GROUP BY d.workspace_id
    )
    SELECT array_agg(o.workspace_id),
           array_agg(date_part('epoch', coalesce(t.next_due_at, o.due) - clock_timestamp()))
    INTO workspaces, dues
    FROM own o
    LEFT JOIN due_times(ARRAY(SELECT n.workspace_id FROM own n WHERE n.due <= clock_timestamp())) AS t
      ON t.workspace_id = o.workspace_id
    WHERE coalesce(t.next_due_at, o.due) < 'infinity';
END $$;
