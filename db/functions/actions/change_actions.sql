-- change_actions(workspace_id, endpoint_id, changes) -> one result per change, in their order
--
-- Starts and ends actions of chats for one endpoint, in one transaction. A change: {"call": "start" | "update"} with the
-- fields of start_action or update_action.
--
-- Results   those of start_action and update_action; or {"verdict"} alone, and nothing changed:
--           endpoint_disabled (or deleted), workspace_disabled
--           workspace_paused  a start; an update passes: a job that has ended must be able to say so
--           rate_limited      with wait_ms
-- Locks     ingress_gates, then bot_chats in order of their key, and bot_actions
CREATE OR REPLACE FUNCTION change_actions(p_workspace_id uuid, p_endpoint_id uuid, p_changes jsonb)
RETURNS jsonb
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
DECLARE
    _admitted record := admit_actions(p_workspace_id, p_endpoint_id, jsonb_array_length(p_changes));
    _results jsonb[];
    _one record;
BEGIN
    FOR _one IN
        SELECT c.change, c.nth
        FROM jsonb_array_elements(p_changes) WITH ORDINALITY AS c (change, nth)
        ORDER BY c.change ->> 'chat_id', c.nth
    LOOP
        _results[_one.nth] := CASE
            WHEN _admitted.verdict IS NOT NULL THEN jsonb_build_object('verdict', _admitted.verdict)
            WHEN _one.nth > _admitted.passed
                THEN jsonb_build_object('verdict', 'rate_limited', 'wait_ms', _admitted.wait_ms)
            WHEN _one.change ->> 'call' = 'update' THEN update_action(p_workspace_id, _one.change)
            WHEN _admitted.status = 'paused' THEN '{"verdict": "workspace_paused"}'
            ELSE start_action(p_workspace_id, _one.change)
        END;
    END LOOP;
    RETURN to_jsonb(_results);
END $$;
