-- record_progress_across(workspace_ids, delivery_ids, claim_tokens, parts, provider_ids)
-- -> for each, in order, whether its claim was current
--
-- A part of a plan was acknowledged. A retry starts after the last recorded part. Recording a part again, after a lost
-- response, changes nothing and returns true. The arrays go row by row, one row per delivery, of any workspaces.
-- series_progress is {"sent_items": [0, 1], "provider_message_ids": [["17"], ["18"]]}.
--
-- provider_ids   [["17"], ["18", "19"], …], in the same order
-- Locks          deliveries by workspace_id and delivery_id
-- Fails          when one of them is held by another transaction for 200 ms: the others must not wait for it
CREATE OR REPLACE FUNCTION record_progress_across(
    p_workspace_ids uuid[],
    p_delivery_ids uuid[],
    p_claim_tokens uuid[],
    p_parts int[],
    p_provider_ids jsonb
)
RETURNS boolean[]
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET lock_timeout = '200ms'
AS $$
DECLARE
    _places tid[] := lock_claims(p_workspace_ids, p_delivery_ids, p_claim_tokens);
BEGIN
    UPDATE deliveries d
    SET render_meta = jsonb_set(d.render_meta, '{series_progress}', jsonb_build_object(
            'sent_items', coalesce(d.render_meta #> '{series_progress,sent_items}', '[]') || to_jsonb(p.part),
            'provider_message_ids', coalesce(d.render_meta #> '{series_progress,provider_message_ids}', '[]')
                || jsonb_build_array(p_provider_ids -> (p.nth - 1)::int))),
        updated_at = clock_timestamp()
    FROM unnest(_places, p_parts) WITH ORDINALITY AS p (place, part, nth)
    WHERE d.ctid = p.place
      AND NOT coalesce(d.render_meta #> '{series_progress,sent_items}', '[]') @> to_jsonb(p.part);
    RETURN ARRAY(SELECT p.place IS NOT NULL FROM unnest(_places) WITH ORDINALITY AS p (place, nth) ORDER BY p.nth);
END $$;
