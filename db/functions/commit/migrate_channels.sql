-- migrate_channels(workspace_id, outcomes, run_id, now)
--
-- Gives a channel its new target when the platform has moved the chat, unless another channel has that target.
--
-- Changes   channels
-- Appends   channel_migrated
-- Locks     channels: held by the caller
CREATE OR REPLACE FUNCTION migrate_channels(
    p_workspace_id uuid,
    p_outcomes decided_outcome[],
    p_run_id uuid,
    p_now timestamptz
)
RETURNS void
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
BEGIN
    WITH migrated AS (
        UPDATE channels c
        SET target_id = m.migrated_to,
            updated_at = p_now
        FROM (
            SELECT o.channel_id, min(o.migrated_to) AS migrated_to, min(o.trace_id) AS trace_id
            FROM unnest(p_outcomes) AS o
            WHERE o.status IS NOT NULL
              AND o.migrated_to IS NOT NULL
            GROUP BY o.channel_id
        ) AS m
        WHERE c.workspace_id = p_workspace_id
          AND c.channel_id = m.channel_id
          AND c.target_id <> m.migrated_to
          AND NOT EXISTS (
              SELECT 1
              FROM channels other
              WHERE other.workspace_id = p_workspace_id
                AND other.platform = c.platform
                AND other.target_id = m.migrated_to
          )
        RETURNING c.channel_id, c.target_id, m.trace_id
    )
    INSERT INTO events (workspace_id, channel_id, action, meta)
    SELECT p_workspace_id, m.channel_id, 'channel_migrated',
           event_meta(m.trace_id, p_run_id, jsonb_build_object('target_id', m.target_id))
    FROM migrated m;
END $$;
