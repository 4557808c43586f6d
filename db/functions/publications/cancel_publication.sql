-- cancel_publication(workspace_id, publication_id, version, by, reason) -> {"verdict", "publication"}
--
-- Cancels a publication for good, unless it is too late for that.
--
-- version    null: whatever version it has
-- Verdicts   cancelled      no call will be made
--            perhaps_sent   cancelled, but an earlier call was never answered: the channel may show it
--            too_late       it is being sent; a call that fails is not repeated
--            partly_sent    some parts of it are in the channel: unchanged
--            already        published or cancelled before
--            not_found, stale
-- Appends    cancelled for its delivery, publication_cancelled
-- Locks      messages, deliveries, then publications: see cancel_deliveries
-- Raises     serialization_failure when its delivery is made at this moment: call again
CREATE OR REPLACE FUNCTION cancel_publication(
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
    _signature jsonb := operator_signature(p_by, p_reason);
    _found record := find_publication(p_workspace_id, p_publication_id, p_version);
    _seen publications := _found.publication;
    _locked record;
    _verdict text;
    _after publications;
BEGIN
    IF _found.verdict IS NULL AND _seen.status IN ('published', 'cancelled') THEN
        _found.verdict := 'already';
    END IF;
    IF _found.verdict IS NOT NULL THEN
        RETURN publication_refusal(_found.verdict, _seen);
    END IF;
    IF _seen.delivery_id IS NOT NULL THEN -- before the publication: a commit locks them in this order
        SELECT c.verdict
        INTO _verdict
        FROM cancel_deliveries(p_workspace_id, ARRAY[_seen.delivery_id], _signature) AS c;
    END IF;

    _locked := lock_publication(p_workspace_id, p_publication_id, coalesce(p_version, _seen.version));
    IF (_locked.publication).delivery_id IS DISTINCT FROM _seen.delivery_id THEN
        RAISE EXCEPTION 'the delivery of a publication changed while it was being cancelled'
            USING ERRCODE = 'serialization_failure', HINT = 'call again';
    ELSIF _verdict IN ('too_late', 'partly_sent') THEN
        RETURN publication_refusal(_verdict, _locked.publication);
    ELSIF (_locked.publication).status = 'cancelled' AND _verdict <> 'already' THEN -- it followed its delivery
        RETURN publication_refusal(_verdict, _locked.publication);
    ELSIF (_locked.publication).status IN ('published', 'cancelled') THEN
        RETURN publication_refusal('already', _locked.publication);
    ELSIF _locked.verdict IS NOT NULL THEN
        RETURN publication_refusal(_locked.verdict, _locked.publication);
    END IF;

    UPDATE publications p
    SET status = 'cancelled',
        version = p.version + 1,
        cancel_reason = _signature ->> 'reason',
        changed_by = _signature ->> 'operator',
        updated_at = clock_timestamp()
    WHERE p.workspace_id = p_workspace_id
      AND p.publication_id = p_publication_id
    RETURNING p.* INTO _after;
    RETURN jsonb_build_object('verdict', 'cancelled', 'publication', publication_document(_after));
END $$;
