-- read_publication(workspace_id, publication_id) -> {"publication", "profile"} or null
--
-- profile   what compiling for its channel needs, as missing_profiles has it; null when the channel is gone
CREATE OR REPLACE FUNCTION read_publication(p_workspace_id uuid, p_publication_id uuid)
RETURNS jsonb
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT jsonb_build_object(
               'publication', publication_document(p),
               'profile', (
                   SELECT to_jsonb(f)
                   FROM channels c
                   CROSS JOIN LATERAL render_profile(c) AS f
                   WHERE c.workspace_id = p.workspace_id
                     AND c.channel_id = p.channel_id
               ))
    FROM publications p
    WHERE p.workspace_id = p_workspace_id
      AND p.publication_id = p_publication_id
$$;
