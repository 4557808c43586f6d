-- retry_publication(workspace_id, publication_id, version, by, reason) -> {"verdict", "publication"}
--
-- Sends a failed or paused publication again, by the same delivery: parts that are in the channel are not repeated.
--
-- Verdicts   retried, not_found, stale
--            not_retryable   it is neither failed nor paused, or it was never sent: give it another time
--            unconfirmed     say first whether the unanswered call arrived: see resolve_publication
--            refused         its delivery may not come back: `why` is the verdict of requeue
-- Appends    manual_requeue, publication_due
-- Locks      messages, deliveries, publications
CREATE OR REPLACE FUNCTION retry_publication(
    p_workspace_id uuid,
    p_publication_id uuid,
    p_version int,
    p_by text,
    p_reason text
)
RETURNS jsonb
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
DECLARE
    _found record := find_publication(p_workspace_id, p_publication_id, p_version);
    _seen publications := _found.publication;
    _verdict text;
BEGIN
    _found.verdict := CASE
        WHEN _found.verdict IS NOT NULL THEN _found.verdict
        WHEN _seen.status NOT IN ('failed', 'paused') OR _seen.delivery_id IS NULL THEN 'not_retryable'
        WHEN _seen.pause_code = 'unconfirmed' THEN 'unconfirmed'
    END;
    IF _found.verdict IS NOT NULL THEN
        RETURN publication_refusal(_found.verdict, _seen);
    END IF;
    -- The content dedup of posts does not hold for publications, so it is forced.
    SELECT r.verdict
    INTO _verdict
    FROM requeue(p_workspace_id, ARRAY[_seen.delivery_id], p_by, p_reason, 4, true) AS r;
    _found := find_publication(p_workspace_id, p_publication_id, NULL);
    IF _verdict <> 'requeued' THEN
        RETURN publication_refusal('refused', _found.publication) || jsonb_build_object('why', _verdict);
    END IF;
    RETURN jsonb_build_object('verdict', 'retried', 'publication', publication_document(_found.publication));
END $$;
