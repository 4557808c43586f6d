-- attempts_by_channel(workspace_id)
-- -> {channel_id: max_attempts} of the channels with a number of their own, or null
--
-- Plain SQL over an index that is nearly always empty: read once per enqueued batch.
CREATE OR REPLACE FUNCTION attempts_by_channel(p_workspace_id uuid)
RETURNS jsonb
LANGUAGE sql
STABLE
AS $$
    SELECT jsonb_object_agg(c.channel_id, c.max_attempts)
    FROM channels c
    WHERE c.workspace_id = p_workspace_id
      AND c.max_attempts IS NOT NULL
$$;
