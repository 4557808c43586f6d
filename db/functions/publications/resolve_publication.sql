-- resolve_publication(workspace_id, publication_id, version, decision, by, reason, provider_message_id)
-- -> {"verdict", "publication"}
--
-- A person has looked into the channel and knows whether the unanswered call of a publication arrived.
--
-- decision   sent | resend, as for resolve_ambiguous
-- Verdicts   those of resolve_ambiguous; not_found, stale, not_unconfirmed
-- Locks, appends   as resolve_ambiguous; the publication follows its delivery
CREATE OR REPLACE FUNCTION resolve_publication(
    p_workspace_id uuid,
    p_publication_id uuid,
    p_version int,
    p_decision text,
    p_by text,
    p_reason text,
    p_provider_message_id text DEFAULT NULL
)
RETURNS jsonb
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
DECLARE
    _found record := find_publication(p_workspace_id, p_publication_id, p_version);
    _verdict text;
BEGIN
    IF _found.verdict IS NULL AND (_found.publication).pause_code IS DISTINCT FROM 'unconfirmed' THEN
        _found.verdict := 'not_unconfirmed';
    END IF;
    IF _found.verdict IS NOT NULL THEN
        RETURN publication_refusal(_found.verdict, _found.publication);
    END IF;
    _verdict := resolve_ambiguous(p_workspace_id, (_found.publication).delivery_id, p_decision, p_by, p_reason,
                                  p_provider_message_id) ->> 'verdict';
    _found := find_publication(p_workspace_id, p_publication_id, NULL);
    RETURN publication_refusal(_verdict, _found.publication);
END $$;
