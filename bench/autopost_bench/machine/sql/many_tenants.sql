-- The workspaces $1 with $3 channels each, in a token group of their own: the group at $4 a second, a channel at $5. Their
-- chats are numbered through, workspace after workspace, after $6. $2 are their sealed tokens of the platform $7.
WITH numbered AS MATERIALIZED (
    SELECT w.workspace_id, w.sealed, w.place - 1 AS place
    FROM unnest($1::uuid[], $2::bytea[]) WITH ORDINALITY AS w (workspace_id, sealed, place)
), workspace AS (
    INSERT INTO workspaces (workspace_id, name)
    SELECT workspace_id, 'bench' FROM numbered
), credential AS (
    INSERT INTO credential_bindings (workspace_id, auth_ref, platform, secret_ref, sealed, bot_id)
    SELECT workspace_id, 'bench', $7, 'sealed', sealed, workspace_id::text FROM numbered
), gate AS (
    INSERT INTO platform_limits (workspace_id, platform, rate_group, rate_rps)
    SELECT workspace_id, $7, 'bench', $4::float8 FROM numbered
)
INSERT INTO channels (workspace_id, platform, target_id, auth_ref, rate_group, rate_rps, max_parallel)
SELECT workspace_id, $7, (-1001000000000 - $6::int - place * $3::int - n)::text, 'bench', 'bench',
       $5::float8, greatest(1, round($5::float8))
FROM numbered
CROSS JOIN generate_series(1, $3::int) AS n
