-- read_renderings(workspace_id, rendering_ids) -> the plans to send; immutable, so a worker may keep them
CREATE OR REPLACE FUNCTION read_renderings(p_workspace_id uuid, p_rendering_ids uuid[])
RETURNS TABLE (rendering_id uuid, plan jsonb)
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT r.rendering_id, r.plan
    FROM renderings r
    WHERE r.workspace_id = p_workspace_id
      AND r.rendering_id = ANY (p_rendering_ids)
$$;
