-- publication_counts(workspace_id) -> what the publications of workspaces wait for, where there are any that have not ended
--
-- next_at       when the next one is due
-- scheduled, publishing, paused, failed   how many
-- late_since    the time of the oldest that is due and not out
-- troubles      [{"publication_id", "status", "code", "channel", "since"}]: paused and failed, the newest five
-- unpublished   commands that are not in the stream
-- untold        notices that their owners have not got
-- workspace_id  null: those of all workspaces that are not disabled
CREATE OR REPLACE FUNCTION publication_counts(p_workspace_id uuid DEFAULT NULL)
RETURNS TABLE (
    workspace_id uuid,
    next_at timestamptz,
    scheduled bigint,
    publishing bigint,
    paused bigint,
    failed bigint,
    late_since timestamptz,
    troubles jsonb,
    unpublished bigint,
    untold bigint
)
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT w.workspace_id, p.next_at, p.scheduled, p.publishing, p.paused, p.failed, p.late_since, t.troubles,
           c.unpublished, n.untold
    FROM workspaces w
    CROSS JOIN LATERAL (
        SELECT count(*) AS open,
               min(p.scheduled_at) FILTER (WHERE p.status = 'scheduled' AND p.scheduled_at > clock_timestamp()) AS next_at,
               count(*) FILTER (WHERE p.status = 'scheduled') AS scheduled,
               count(*) FILTER (WHERE p.status = 'publishing') AS publishing,
               count(*) FILTER (WHERE p.status = 'paused') AS paused,
               count(*) FILTER (WHERE p.status = 'failed') AS failed,
               min(p.scheduled_at) FILTER (WHERE p.status IN ('scheduled', 'publishing')
                                             AND p.scheduled_at <= clock_timestamp()) AS late_since
        FROM publications p
        WHERE p.workspace_id = w.workspace_id
          AND p.status NOT IN ('published', 'cancelled')
    ) AS p
    CROSS JOIN LATERAL (
        SELECT coalesce(jsonb_agg(jsonb_build_object(
                   'publication_id', x.publication_id, 'status', x.status,
                   'code', coalesce(x.pause_code, x.last_error ->> 'error_type'),
                   'channel', quoted(coalesce(k.title, k.target_id)), 'since', x.updated_at)
                   ORDER BY x.updated_at DESC), '[]') AS troubles
        FROM (
            SELECT x.*
            FROM publications x
            WHERE x.workspace_id = w.workspace_id
              AND x.status IN ('paused', 'failed')
            ORDER BY x.updated_at DESC
            LIMIT 5
        ) AS x
        JOIN channels k
          ON k.workspace_id = x.workspace_id
         AND k.channel_id = x.channel_id
    ) AS t
    CROSS JOIN LATERAL (
        SELECT count(*) AS unpublished
        FROM command_outbox c
        WHERE c.workspace_id = w.workspace_id
          AND c.published_at IS NULL
    ) AS c
    CROSS JOIN LATERAL (
        SELECT count(*) AS untold
        FROM publication_notices n
        WHERE n.workspace_id = w.workspace_id
          AND n.told_at IS NULL
          AND n.given_up_at IS NULL
    ) AS n
    WHERE w.status <> 'disabled'
      AND (p_workspace_id IS NULL OR w.workspace_id = p_workspace_id)
      AND p.open + c.unpublished + n.untold > 0
$$;
