-- record_progress(workspace_id, delivery_id, claim_token, part, provider_ids) -> whether the claim was current
--
-- record_progress_across for one part.
CREATE OR REPLACE FUNCTION record_progress(
    p_workspace_id uuid,
    p_delivery_id uuid,
    p_claim_token uuid,
    p_part int,
    p_provider_ids text[]
)
RETURNS boolean
LANGUAGE sql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT (record_progress_across(ARRAY[p_workspace_id], ARRAY[p_delivery_id], ARRAY[p_claim_token], ARRAY[p_part],
                                   jsonb_build_array(p_provider_ids)))[1]
$$;
