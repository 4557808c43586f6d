-- publication_refusal(verdict, publication) -> {"verdict", "publication"}: why it stays as it is, and what it is
CREATE OR REPLACE FUNCTION publication_refusal(p_verdict text, p_publication publications)
RETURNS jsonb
LANGUAGE sql
STABLE PARALLEL SAFE
AS $$
    SELECT jsonb_build_object('verdict', p_verdict)
        || CASE WHEN (p_publication).publication_id IS NOT NULL
                THEN jsonb_build_object('publication', publication_document(p_publication))
                ELSE '{}' END
$$;
