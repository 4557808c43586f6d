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
    _places tid[];
    _channels_in uuid[];
    _channels uuid[];
BEGIN
    SELECT array_agg(w.workspace_id)
    INTO _in_doubt
    FROM (SELECT DISTINCT unnest(p_workspace_ids) AS workspace_id) AS w
    WHERE w.workspace_id IN (SELECT circuits_in_doubt(p_workspace_ids))
       OR EXISTS (SELECT 1 FROM channels c WHERE c.workspace_id = w.workspace_id AND c.error_streak > 0);
    _places := lock_claims(
        CASE WHEN _in_doubt IS NULL THEN p_workspace_ids ELSE ARRAY(
            SELECT CASE WHEN w.workspace_id <> ALL (_in_doubt) THEN w.workspace_id END
            FROM unnest(p_workspace_ids) WITH ORDINALITY AS w (workspace_id, nth)
            ORDER BY w.nth
        ) END,
        p_delivery_ids, p_claim_tokens);
    _now := clock_timestamp();

    -- Before the move, which gives the rows other places.
    WITH told AS (
        INSERT INTO events (id, workspace_id, delivery_id, message_id, channel_id, action, attempt, meta)
        SELECT id_in(_ids, _first_id + o.nth), d.workspace_id, d.delivery_id, d.message_id, d.channel_id, 'sent',
               d.attempt, sent_meta(d.trace_id, p_run_id, d.delivery_id, o.provider_message_id)
        FROM unnest(_places, p_provider_message_ids) WITH ORDINALITY AS o (place, provider_message_id, nth)
        JOIN deliveries d ON d.ctid = o.place
        RETURNING workspace_id, channel_id
    )
    SELECT array_agg(t.workspace_id), array_agg(t.channel_id) INTO _channels_in, _channels FROM told t;
    PERFORM move_deliveries(ARRAY(
        SELECT (o.place, 'sent', NULL, NULL, NULL, o.provider_message_id, NULL, 1)::delivery_move
        FROM unnest(_places, p_provider_message_ids) AS o (place, provider_message_id)
        WHERE o.place IS NOT NULL
    ), _now);

    unsettled := ARRAY(
        SELECT o.nth FROM unnest(_places) WITH ORDINALITY AS o (place, nth) WHERE o.place IS NULL ORDER BY o.nth);
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
