-- $1: so many workspaces, each with a bot without limits and five rules, and $2 chats in each.
WITH workspace AS (
    INSERT INTO workspaces (workspace_id, name)
    SELECT gen_random_uuid(), 'bench'
    FROM generate_series(1, $1::int)
    RETURNING workspace_id
), credential AS (
    INSERT INTO credential_bindings (workspace_id, auth_ref, platform, secret_ref)
    SELECT workspace_id, 'bench', 'max', 'env:AUTOPOST_BENCH_TOKEN' FROM workspace
), gate AS (
    INSERT INTO platform_limits (workspace_id, platform, rate_group, rate_rps)
    SELECT workspace_id, 'max', 'bench', 1000000 FROM workspace
), rules AS (
    INSERT INTO bot_rules (workspace_id, rule_id, intent, pattern, response_template)
    SELECT w.workspace_id, 'rule' || n, 'bench',
           jsonb_build_object('mode', 'contains', 'keywords', jsonb_build_array('word' || n, 'other' || n)),
           'Answer ' || n || ' of the shop, in a sentence of usual length.'
    FROM workspace w
    CROSS JOIN generate_series(1, 5) AS n
)
INSERT INTO bot_chats (workspace_id, chat_id)
SELECT workspace_id, n::text
FROM workspace
CROSS JOIN generate_series(1, $2::int) AS n
