-- staged_origin(staged) -> where a staged post came from, for its events
CREATE OR REPLACE FUNCTION staged_origin(p_staged staged_posts)
RETURNS jsonb
LANGUAGE sql
STABLE
AS $$
    SELECT jsonb_build_object('post_id', p_staged.post_id, 'endpoint_id', p_staged.endpoint_id,
                              'run_id', p_staged.run_id, 'trace_id', p_staged.trace_id)
        || jsonb_strip_nulls(jsonb_build_object('source_id', p_staged.source -> 'source_id',
                                                'source_ref', quoted(p_staged.request ->> 'source_ref', 256)))
$$;
