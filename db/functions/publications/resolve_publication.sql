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
    _seen publications;
    _verdict text;
BEGIN
    SELECT p.*
    INTO _seen
    FROM publications p
    WHERE p.workspace_id = p_workspace_id
      AND p.publication_id = p_publication_id;
    _verdict := CASE
        WHEN _seen.publication_id IS NULL THEN 'not_found'
        WHEN _seen.version <> p_version THEN 'stale'
        WHEN _seen.pause_code IS DISTINCT FROM 'unconfirmed' THEN 'not_unconfirmed'
    END;
    IF _verdict IS NULL THEN
        _verdict := resolve_ambiguous(p_workspace_id, _seen.delivery_id, p_decision, p_by, p_reason,
                                      p_provider_message_id) ->> 'verdict';
        SELECT p.*
        INTO _seen
        FROM publications p
        WHERE p.workspace_id = p_workspace_id
          AND p.publication_id = p_publication_id;
    END IF;
    RETURN publication_refusal(_verdict, _seen);
END $$;
