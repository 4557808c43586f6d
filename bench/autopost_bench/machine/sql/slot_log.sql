-- Every slot that is taken after the first of a delivery, which send_attempt tells, and every one that was missed and
-- given back: take_slots, and a note of it beside.
CREATE TABLE slot_log (
    workspace_id uuid NOT NULL,
    channel_id uuid NOT NULL,
    slot_at timestamptz NOT NULL,
    beside boolean NOT NULL,
    missed timestamptz
);

ALTER FUNCTION take_slots(uuid[], uuid[], uuid[], boolean[], timestamptz[], interval, timestamptz) RENAME TO take_slots_itself;

CREATE FUNCTION take_slots(
    p_workspace_ids uuid[],
    p_delivery_ids uuid[],
    p_claim_tokens uuid[],
    p_beside boolean[],
    p_missed timestamptz[],
    p_patience interval DEFAULT '5 seconds',
    p_now timestamptz DEFAULT NULL
)
RETURNS TABLE (nth bigint, slot_at timestamptz, taken boolean)
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    WITH slot AS MATERIALIZED (
        SELECT *
        FROM take_slots_itself(p_workspace_ids, p_delivery_ids, p_claim_tokens, p_beside, p_missed, p_patience, p_now)
    ), noted AS (
        INSERT INTO slot_log (workspace_id, channel_id, slot_at, beside, missed)
        SELECT d.workspace_id, d.channel_id, s.slot_at, p_beside[s.nth], p_missed[s.nth]
        FROM slot s
        CROSS JOIN LATERAL (
            SELECT d.workspace_id, d.channel_id
            FROM deliveries d
            WHERE d.workspace_id = p_workspace_ids[s.nth]
              AND d.delivery_id = p_delivery_ids[s.nth]
            OFFSET 0
        ) AS d
        WHERE s.taken
    )
    SELECT s.nth, s.slot_at, s.taken FROM slot s;
END $$;

GRANT EXECUTE ON FUNCTION take_slots(uuid[], uuid[], uuid[], boolean[], timestamptz[], interval, timestamptz)
    TO autopost_dispatcher;
