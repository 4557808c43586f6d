-- why_find(id, workspace_id, limit) -> what an id may mean: one row per thing found
--
-- Accepts ids of deliveries, messages, channels, staged posts, publications and runs, a channel's address on its
-- platform, a trace id, and a source_ref. The last three, and runs, stand for the posts that belong to them. A delivery
-- or a message of a publication stands for the publication too, also when an edit has left that delivery behind.
--
-- workspace_id   null: all that the caller may see
-- kind           publication | delivery | message | channel | post | run (only when no post of it is known)
-- Cost           a few probes by key in every workspace
CREATE OR REPLACE FUNCTION why_find(p_id text, p_workspace_id uuid DEFAULT NULL, p_limit int DEFAULT 20)
RETURNS TABLE (workspace_id uuid, kind text, id uuid)
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    WITH asked AS MATERIALIZED (
        SELECT CASE WHEN p_id ~* '^[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}$' THEN p_id::uuid END AS uuid
    ), tenants AS MATERIALIZED (
        SELECT w.workspace_id
        FROM workspaces w
        WHERE (p_workspace_id IS NULL OR w.workspace_id = p_workspace_id)
          AND sees_workspace(w.workspace_id)
    ), runs AS MATERIALIZED (
        SELECT t.workspace_id, r.run_id
        FROM asked a, tenants t
        JOIN ingest_runs r USING (workspace_id)
        WHERE r.run_id = a.uuid
        UNION
        SELECT t.workspace_id, r.run_id
        FROM ingest_runs r
        JOIN tenants t USING (workspace_id)
        WHERE r.trace_id = p_id
        UNION
        SELECT t.workspace_id, r.run_id
        FROM ingress_receipts r
        JOIN tenants t USING (workspace_id)
        WHERE r.source_ref = p_id
          AND r.run_id IS NOT NULL
    ), of_runs AS MATERIALIZED (
        SELECT r.workspace_id, p.kind, p.id
        FROM runs r
        CROSS JOIN LATERAL why_run(r.workspace_id, r.run_id, p_limit) AS p
    )
    SELECT f.workspace_id, f.kind, f.id
    FROM (
        SELECT t.workspace_id, 'delivery' AS kind, d.delivery_id AS id
        FROM asked a, tenants t
        JOIN deliveries d USING (workspace_id)
        WHERE d.delivery_id = a.uuid
        UNION
        SELECT t.workspace_id, 'message', m.message_id
        FROM asked a, tenants t
        JOIN messages m USING (workspace_id)
        WHERE m.message_id = a.uuid
        UNION
        SELECT t.workspace_id, 'channel', c.channel_id
        FROM asked a, tenants t
        JOIN channels c USING (workspace_id)
        WHERE c.channel_id = a.uuid
        UNION
        SELECT t.workspace_id, 'post', s.post_id
        FROM asked a, tenants t
        JOIN staged_posts s USING (workspace_id)
        WHERE s.post_id = a.uuid
        UNION
        SELECT t.workspace_id, 'publication', p.publication_id
        FROM asked a, tenants t
        JOIN publications p USING (workspace_id)
        WHERE p.publication_id = a.uuid
        UNION
        SELECT t.workspace_id, 'publication', p.publication_id
        FROM asked a, tenants t
        JOIN deliveries d USING (workspace_id)
        JOIN publications p
          ON p.workspace_id = d.workspace_id
         AND p.publication_id = d.enqueue_batch_id
        WHERE (d.delivery_id = a.uuid OR d.message_id = a.uuid)
          AND d.policy = 'publication'
        UNION
        SELECT t.workspace_id, 'channel', c.channel_id
        FROM channels c
        JOIN tenants t USING (workspace_id)
        WHERE c.target_id = p_id
        UNION
        SELECT t.workspace_id, 'message', m.message_id
        FROM messages m
        JOIN tenants t USING (workspace_id)
        WHERE m.source_ref = p_id
        UNION
        SELECT t.workspace_id, 'message', r.message_id
        FROM tenants t
        JOIN pull_sources s USING (workspace_id)
        JOIN pull_receipts r USING (workspace_id, source_id)
        WHERE r.source_ref = p_id
          AND r.message_id IS NOT NULL
        UNION
        SELECT o.workspace_id, o.kind, o.id
        FROM of_runs o
    ) AS f
    ORDER BY array_position('{publication,post,message,delivery,channel,run}'::text[], f.kind), f.workspace_id, f.id DESC
    LIMIT p_limit
$$;
