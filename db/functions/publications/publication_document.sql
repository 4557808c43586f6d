-- publication_document(publication) -> the publication as callers see it
CREATE OR REPLACE FUNCTION publication_document(p_publication publications)
RETURNS jsonb
LANGUAGE sql
STABLE PARALLEL SAFE
AS $$
    SELECT to_jsonb(p_publication) - 'workspace_id' - 'traceparent'
$$;
