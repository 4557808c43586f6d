-- publication_refusal(verdict, publication) -> {"verdict", "publication"}: why it stays as it is, and what it is
CREATE OR REPLACE FUNCTION publication_refusal(p_verdict text, p_publication publications)
RETURNS jsonb
LANGUAGE sql
STABLE PARALLEL SAFE
AS $$
    SELECT jsonb_strip_nulls(jsonb_build_object(
        'verdict', p_verdict,
        'publication', CASE WHEN (p_publication).publication_id IS NOT NULL THEN publication_document(p_publication) END))
$$;
