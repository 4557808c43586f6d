-- lock_deliveries(workspace_id, delivery_ids)
--
-- Locks those that exist, all or none: while another transaction holds one of them, it waits for that one and holds none.
--
-- A statement that an operator pastes locks deliveries in the order of its plan, which nobody chooses. A function that
-- held one of them and waited for another could meet it halfway, and one of the two would fail. Dispatchers lock by key
-- and need not do this: what such a statement brings back is not theirs.
--
-- Locks     deliveries FOR UPDATE
CREATE OR REPLACE FUNCTION lock_deliveries(p_workspace_id uuid, p_delivery_ids uuid[])
RETURNS void
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
DECLARE
    _busy uuid[];
BEGIN
    LOOP
        BEGIN
            PERFORM 1
            FROM deliveries d
            WHERE d.workspace_id = p_workspace_id
              AND d.delivery_id = _busy[1]
            FOR UPDATE;

            _busy := ARRAY(
                SELECT asked.delivery_id
                FROM (SELECT DISTINCT unnest(p_delivery_ids) AS delivery_id) AS asked
                LEFT JOIN LATERAL ( -- each by key, whatever the planner estimates
                    SELECT true AS is_mine
                    FROM deliveries d
                    WHERE d.workspace_id = p_workspace_id
                      AND d.delivery_id = asked.delivery_id
                    FOR UPDATE SKIP LOCKED
                ) AS locked ON true
                WHERE locked.is_mine IS NULL
                  AND EXISTS (
                      SELECT 1
                      FROM deliveries d
                      WHERE d.workspace_id = p_workspace_id
                        AND d.delivery_id = asked.delivery_id
                      OFFSET 0 -- a join would be planned for the size that the table had
                  )
                ORDER BY asked.delivery_id
            );
            IF cardinality(_busy) = 0 THEN
                RETURN;
            END IF;
            RAISE object_in_use;
        EXCEPTION
            WHEN object_in_use THEN
                NULL; -- the locks of this block are gone
        END;
    END LOOP;
END $$;
