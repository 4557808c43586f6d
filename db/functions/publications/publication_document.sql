-- publication_document(publication) -> the publication as callers see it; late_after is an ISO 8601 duration
CREATE OR REPLACE FUNCTION publication_document(p_publication publications)
RETURNS jsonb
LANGUAGE sql
STABLE PARALLEL SAFE
AS $$
    SELECT to_jsonb(p_publication) - 'workspace_id' - 'traceparent'
        || jsonb_build_object('late_after', format('PT%sS', date_part('epoch', (p_publication).late_after)::bigint))
$$;
