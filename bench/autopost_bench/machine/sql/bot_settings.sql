-- After bot_tenants: the keys that the settings refer to are there.
INSERT INTO bot_settings (workspace_id, auth_ref, rate_group, chat_rps, chat_per_minute, texts)
SELECT workspace_id, 'bench', 'bench', 1000000, NULL, '{"clarify": "Which topic?"}'
FROM workspaces w
WHERE NOT EXISTS (SELECT 1 FROM bot_settings s WHERE s.workspace_id = w.workspace_id)
