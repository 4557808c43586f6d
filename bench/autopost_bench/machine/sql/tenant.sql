-- A workspace with $3 channels in one token group, numbered after $7, its token sealed in $8, and the endpoint through which posts come in.
WITH workspace AS (
    INSERT INTO workspaces (workspace_id, name)
    VALUES ($1, 'bench')
), endpoint AS (
    INSERT INTO workspace_endpoints (workspace_id, endpoint_id, kind, secret_hash, ingress_rps)
    VALUES ($1, $2, 'webhook_push', encode(sha256(convert_to($1::text, 'UTF8')), 'hex'), NULL)
), credential AS (
    -- All of them have one token, and a bot belongs to one workspace: each says that its bot is another.
    INSERT INTO credential_bindings (workspace_id, auth_ref, platform, secret_ref, sealed, bot_id)
    VALUES ($1, 'bench', 'telegram', 'sealed', $8, $1::text)
), gate AS (
    INSERT INTO platform_limits (workspace_id, platform, rate_group, rate_rps)
    VALUES ($1, 'telegram', 'bench', $4::float8)
)
INSERT INTO channels (workspace_id, platform, target_id, auth_ref, rate_group, rate_rps, max_parallel)
SELECT $1, 'telegram', (-1001000000000 - $7::int - n)::text, 'bench', 'bench', $5::float8, $6
FROM generate_series(1, $3::int) AS n
