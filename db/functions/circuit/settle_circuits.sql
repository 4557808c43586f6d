-- settle_circuits(workspace_id, outcomes, places, run_id, now) -> the places of the groups after it
--
-- The circuits of rate groups, as far as decided outcomes move them. A platform that is down, hangs or gives half
-- answers must not cost posts their attempts: its groups are opened, and probed until it answers again.
--
-- An outcome    answers    sent, or refused by the API with a 4xx (429 too)
--               fails      TRANSIENT, scope platform, without a wait that the platform named and without an answer. An
--                          upload host is not the API: its failures have scope delivery
--               else it says nothing about the platform
-- closed        an answer clears the failures before it. Three distinct deliveries open the circuit. One that fails
--               again makes the platform be asked (probe_at): if it says who it is, the failure is the delivery's own
-- open          nothing: what ends now was sent before
-- half          of the trial alone. Answered: closed. No answer: open again, and the number of the next probe goes on.
--               Anything else: another trial follows
--
-- places        of the groups that lock_gates has locked; no other group is written
-- Changes       platform_limits
-- Appends       group_opened, group_closed
-- Locks         platform_limits: held by the caller
CREATE OR REPLACE FUNCTION settle_circuits(
    p_workspace_id uuid,
    p_outcomes decided_outcome[],
    p_places tid[],
    p_run_id uuid,
    p_now timestamptz
)
RETURNS tid[]
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
DECLARE
    _group record;
    _outcome record;
    _failed uuid[];
    _asked boolean;
    _opens jsonb;
    _platforms text[];
    _rate_groups text[];
BEGIN
    SELECT array_agg(g.platform), array_agg(g.rate_group)
    INTO _platforms, _rate_groups
    FROM platform_limits g
    WHERE g.workspace_id = p_workspace_id
      AND g.ctid = ANY (p_places);

    FOR _group IN
        SELECT g.platform, g.rate_group, g.circuit, g.failed_deliveries, g.probe_at, g.trial
        FROM platform_limits g
        WHERE g.workspace_id = p_workspace_id
          AND g.ctid = ANY (p_places)
          AND g.circuit <> 'open'
    LOOP
        _failed := _group.failed_deliveries;
        _asked := _group.probe_at IS NOT NULL;
        _opens := NULL;
        FOR _outcome IN
            SELECT o.delivery_id, o.answered, o.error,
                   o.result = 'failed' AND o.category = 'TRANSIENT' AND o.scope = 'platform' AS no_answer,
                   o.retry_after_ms IS NOT NULL AS names_wait
            FROM unnest(p_outcomes) AS o
            WHERE o.status IS NOT NULL
              AND o.platform = _group.platform
              AND o.rate_group = _group.rate_group
            ORDER BY o.place
        LOOP
            IF _group.circuit = 'half' THEN
                CONTINUE WHEN _outcome.delivery_id IS DISTINCT FROM _group.trial;
                IF _outcome.answered THEN
                    PERFORM close_circuit(p_workspace_id, _group.platform, _group.rate_group, p_run_id, p_now);
                ELSE
                    PERFORM end_trial(p_workspace_id, _group.platform, _group.rate_group,
                                      CASE WHEN _outcome.no_answer THEN _outcome.error END);
                END IF;
                EXIT;
            END IF;
            IF _outcome.answered THEN
                _failed := '{}';
                _asked := false;
            ELSIF _outcome.no_answer AND NOT _outcome.names_wait THEN
                _asked := _asked OR _outcome.delivery_id = ANY (_failed);
                _failed := array_append(array_remove(_failed, _outcome.delivery_id), _outcome.delivery_id);
                IF cardinality(_failed) = 3 THEN
                    _opens := _outcome.error;
                    EXIT;
                END IF;
            END IF;
        END LOOP;

        IF _opens IS NOT NULL THEN
            PERFORM open_circuit(p_workspace_id, _group.platform, _group.rate_group, _opens, p_run_id, p_now);
        ELSIF _group.circuit = 'closed'
              AND (_failed, _asked) IS DISTINCT FROM (_group.failed_deliveries, _group.probe_at IS NOT NULL) THEN
            UPDATE platform_limits g
            SET failed_deliveries = _failed,
                probe_at = CASE WHEN _asked THEN coalesce(g.probe_at, p_now) END
            WHERE g.workspace_id = p_workspace_id
              AND g.platform = _group.platform
              AND g.rate_group = _group.rate_group;
        END IF;
    END LOOP;

    RETURN ARRAY(
        SELECT g.ctid
        FROM platform_limits g
        WHERE g.workspace_id = p_workspace_id
          AND (g.platform, g.rate_group) IN (SELECT * FROM unnest(_platforms, _rate_groups))
    );
END $$;
