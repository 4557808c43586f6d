-- alert_notice(workspace_id, facts, with_snapshot) -> the body of a notice: the facts, their workspace and the time
--
-- Fixed when it is written: a target that was away gets what was true then. With a snapshot: the counts by status and
-- the five most frequent errors of the last ten minutes, of the workspace or of all workspaces together.
CREATE OR REPLACE FUNCTION alert_notice(p_workspace_id uuid, p_facts jsonb, p_with_snapshot boolean)
RETURNS jsonb
LANGUAGE sql
STABLE
AS $$
    SELECT jsonb_strip_nulls(p_facts || jsonb_build_object(
        'at', clock_timestamp(),
        'workspace_id', w.workspace_id,
        'workspace', w.name,
        'snapshot', CASE WHEN p_with_snapshot THEN (
            SELECT jsonb_build_object('counts', counts.sums, 'top_errors', coalesce(errors.top, '[]'))
            FROM (SELECT snapshot(w.workspace_id, '10 minutes', 5) -> 'workspaces' AS seen) AS s
            CROSS JOIN LATERAL (
                SELECT jsonb_object_agg(c.status, c.deliveries) AS sums
                FROM (
                    SELECT e.key AS status, sum(e.value::bigint) AS deliveries
                    FROM jsonb_array_elements(s.seen) AS one
                    CROSS JOIN LATERAL jsonb_each_text(one -> 'counts') AS e
                    GROUP BY e.key
                ) AS c
            ) AS counts
            CROSS JOIN LATERAL (
                SELECT jsonb_agg(jsonb_build_object('code', t.code, 'count', t.errors) ORDER BY t.errors DESC, t.code) AS top
                FROM (
                    SELECT e ->> 'code' AS code, sum((e ->> 'count')::bigint) AS errors
                    FROM jsonb_array_elements(s.seen) AS one
                    CROSS JOIN LATERAL jsonb_array_elements(one -> 'top_errors') AS e
                    GROUP BY 1
                    ORDER BY 2 DESC, 1
                    LIMIT 5
                ) AS t
            ) AS errors
        ) END))
    FROM (SELECT p_workspace_id AS asked) AS a
    LEFT JOIN workspaces w ON w.workspace_id = a.asked
$$;
