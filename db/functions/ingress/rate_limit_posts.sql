-- rate_limit_posts(workspace_id, endpoint_id, rate, posts, past_gate) -> which posts the rate limit lets pass
--
-- chosen       the posts that pass. Posts with past_gate pass always: an earlier call took their token.
-- verdicts     {place: verdict} of the others
-- Appends      ingress_rate_limited
-- Locks        ingress_gates, also for posts with past_gate: so all callers lock in one order
CREATE OR REPLACE FUNCTION rate_limit_posts(
    p_workspace_id uuid,
    p_endpoint_id uuid,
    p_rate numeric,
    p_posts post[],
    p_past_gate boolean[],
    OUT chosen post[],
    OUT verdicts jsonb
)
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
DECLARE
    _paying int[];
    _gate record;
    _refused int[];
BEGIN
    chosen := p_posts;
    verdicts := '{}';
    IF rate_step(p_rate) = interval '0' THEN
        RETURN;
    END IF;

    _paying := ARRAY(SELECT g.place::int FROM unnest(p_past_gate) WITH ORDINALITY AS g (past, place)
                     WHERE NOT g.past ORDER BY g.place);
    _gate := take_ingress_tokens(p_workspace_id, p_endpoint_id, p_rate, cardinality(_paying));
    _refused := _paying[_gate.passed + 1:];
    IF _refused = '{}' THEN
        RETURN;
    END IF;
    PERFORM refuse_ingress(p_workspace_id, p_endpoint_id, 'push', 'ingress_rate_limited', 'rate_limited',
                           jsonb_build_object('code', 'rate_limited'),
                           (p_posts[_refused[1]]).trace_id, cardinality(_refused));
    chosen := ARRAY(SELECT p FROM unnest(p_posts) AS p WHERE p.place <> ALL (_refused));
    SELECT jsonb_object_agg(r.place, jsonb_build_object(
               'verdict', 'rate_limited', 'retry_after_ms', ceil(extract(epoch FROM _gate.wait) * 1000)))
    INTO verdicts
    FROM unnest(_refused) AS r (place);
END $$;
