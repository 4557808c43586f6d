-- $1 chats in which nothing is due and as many log lines, in workspaces with bots; $2 due chats of a paused workspace.
WITH place AS (
    SELECT workspace_id, row_number() OVER () - 1 AS nth, count(*) OVER () AS places FROM bot_settings
), idle AS (
    INSERT INTO bot_chats (workspace_id, chat_id, stopped_at)
    SELECT p.workspace_id, 'idle-' || n, now()
    FROM generate_series(1, $1::int) AS n
    JOIN place p ON p.nth = n % p.places
), logged AS (
    INSERT INTO bot_logs (workspace_id, ts, chat_id, message_text, state_before, state_after, meta)
    SELECT p.workspace_id, now() - n * interval '2 seconds', 'idle-' || n, 'text', 'default', 'default',
           '{"outcome": "matched"}'
    FROM generate_series(1, $1::int) AS n
    JOIN place p ON p.nth = n % p.places
), paused AS (
    INSERT INTO workspaces (workspace_id, name, status)
    VALUES (gen_random_uuid(), 'paused', 'paused')
    RETURNING workspace_id
), credential AS (
    INSERT INTO credential_bindings (workspace_id, auth_ref, platform, secret_ref)
    SELECT workspace_id, 'bench', 'max', 'env:AUTOPOST_BENCH_TOKEN' FROM paused
), gate AS (
    INSERT INTO platform_limits (workspace_id, platform, rate_group, rate_rps)
    SELECT workspace_id, 'max', 'bench', 1000000 FROM paused
)
INSERT INTO bot_chats (workspace_id, chat_id, due_at)
SELECT workspace_id, n::text, now()
FROM paused
CROSS JOIN generate_series(1, $2::int) AS n
