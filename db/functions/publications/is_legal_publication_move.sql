-- is_legal_publication_move(from, to) -> whether a publication may make this transition
--
-- The state machine of publications, in this function only.
--
-- draft        -> approved, cancelled
-- approved     -> scheduled; draft when it is edited; cancelled
-- scheduled    -> publishing when it is due; approved when it is unscheduled; draft, cancelled; paused when it is missed
-- publishing   -> published, failed, paused; scheduled, approved and cancelled only while it has no delivery, or with
--                 its delivery cancelled
-- paused       -> publishing when it is retried or resolved; published when it was found in the channel; scheduled, draft,
--                 cancelled; failed
-- failed       -> publishing when it is retried; draft, cancelled
-- published, cancelled   final
CREATE OR REPLACE FUNCTION is_legal_publication_move(p_from text, p_to text)
RETURNS boolean
LANGUAGE sql
IMMUTABLE PARALLEL SAFE
AS $$
    SELECT CASE p_from
        WHEN 'draft' THEN p_to IN ('approved', 'cancelled')
        WHEN 'approved' THEN p_to IN ('scheduled', 'draft', 'cancelled')
        WHEN 'scheduled' THEN p_to IN ('publishing', 'approved', 'draft', 'paused', 'cancelled')
        WHEN 'publishing' THEN p_to IN ('published', 'failed', 'paused', 'scheduled', 'approved', 'cancelled')
        WHEN 'paused' THEN p_to IN ('publishing', 'published', 'scheduled', 'draft', 'failed', 'cancelled')
        WHEN 'failed' THEN p_to IN ('publishing', 'draft', 'cancelled')
        ELSE false
    END
$$;
