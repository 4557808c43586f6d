-- record_progress(workspace_id, delivery_id, claim_token, part, provider_ids) -> whether the claim was current
--
-- A part of a plan was acknowledged. A retry starts after the last recorded part. Recording a part again, after a lost
-- response, changes nothing and returns true.
-- series_progress is {"sent_items": [0, 1], "provider_message_ids": [["17"], ["18"]]}.
CREATE OR REPLACE FUNCTION record_progress(
    p_workspace_id uuid,
    p_delivery_id uuid,
    p_claim_token uuid,
    p_part int,
    p_provider_ids text[]
)
RETURNS boolean
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
BEGIN
    UPDATE deliveries d
    SET render_meta = jsonb_set(d.render_meta, '{series_progress}', jsonb_build_object(
            'sent_items', coalesce(d.render_meta #> '{series_progress,sent_items}', '[]') || to_jsonb(p_part),
            'provider_message_ids', coalesce(d.render_meta #> '{series_progress,provider_message_ids}', '[]')
                || jsonb_build_array(to_jsonb(p_provider_ids)))),
        updated_at = clock_timestamp()
    WHERE d.workspace_id = p_workspace_id
      AND d.delivery_id = p_delivery_id
      AND d.status = 'sending'
      AND d.claim_token = p_claim_token
      AND NOT coalesce(d.render_meta #> '{series_progress,sent_items}', '[]') @> to_jsonb(p_part);
    RETURN FOUND OR EXISTS (
        SELECT 1
        FROM deliveries d
        WHERE d.workspace_id = p_workspace_id
          AND d.delivery_id = p_delivery_id
          AND d.status = 'sending'
          AND d.claim_token = p_claim_token
    );
END $$;
