-- skip_to_event(state, after, step)
-- -> a seq with no event between `after` and it, and one within `step` of it; or the end of the window
--
-- Old events are deleted by whole partitions, so there may be a billion numbers without an event: strides that double
-- while they find nothing, then halve again.
CREATE OR REPLACE FUNCTION skip_to_event(p_state relay_state, p_after bigint, p_step bigint)
RETURNS bigint
LANGUAGE plpgsql
STABLE
SET enable_seqscan = off SET enable_indexscan = off SET enable_indexonlyscan = off
AS $$
DECLARE
    _after bigint := p_after;
    _stride bigint := p_step;
    _growing boolean := true;
BEGIN
    WHILE _after < p_state.seq_top LOOP
        IF EXISTS (SELECT 1 FROM events e WHERE e.seq > _after AND e.seq <= _after + _stride AND e.ts > p_state.since) THEN
            EXIT WHEN _stride <= p_step;
            _growing := false;
            _stride := greatest(_stride / 2, p_step);
        ELSE
            _after := _after + _stride;
            _stride := CASE WHEN _growing THEN _stride * 2 ELSE greatest(_stride / 2, p_step) END;
        END IF;
    END LOOP;
    RETURN least(_after, p_state.seq_top);
END $$;
