-- list_dead_letters(workspace_id, publication_id, error_type, open_only, limit) -> dead letters, the newest first
--
-- What was written to delivery.commands.dlq, and what has become of its publication since.
--
-- publication_id, error_type   null: all
-- is_open       nobody has dealt with it: the publication still is as it was left, by this very letter
-- letter        the message itself, see PublishPostFailed
CREATE OR REPLACE FUNCTION list_dead_letters(
    p_workspace_id uuid,
    p_publication_id uuid DEFAULT NULL,
    p_error_type text DEFAULT NULL,
    p_open_only boolean DEFAULT true,
    p_limit int DEFAULT 100
)
RETURNS TABLE (
    at timestamptz,
    publication_id uuid,
    version int,
    error_type text,
    code text,
    message text,
    attempts int,
    channel_id uuid,
    channel text,
    status text,
    is_open boolean,
    published_at timestamptz,
    letter jsonb
)
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT l.created_at, l.publication_id, l.version, l.error_type, l.letter #>> '{error,code}',
           l.letter #>> '{error,message}', (l.letter -> 'attempts')::int, l.channel_id, coalesce(k.title, k.target_id),
           l.status, l.is_open, l.published_at, l.letter
    FROM (
        SELECT c.created_at, p.publication_id, (c.payload -> 'version')::int AS version,
               c.payload ->> 'error_type' AS error_type, p.workspace_id, p.channel_id, p.status, c.published_at,
               p.status IN ('failed', 'paused')
               AND p.version = (c.payload -> 'version')::int
               AND p.last_error ->> 'error_type' = c.payload ->> 'error_type'
               AND row_number() OVER (PARTITION BY p.publication_id ORDER BY c.created_at DESC, c.command_id DESC) = 1
               AS is_open,
               c.payload AS letter
        FROM command_outbox c
        JOIN publications p
          ON p.workspace_id = c.workspace_id
         AND p.publication_id = (c.payload ->> 'publication_id')::uuid
        WHERE c.workspace_id = p_workspace_id
          AND c.subject = 'delivery.commands.dlq'
          AND (p_publication_id IS NULL OR p.publication_id = p_publication_id)
    ) AS l
    JOIN channels k
      ON k.workspace_id = l.workspace_id
     AND k.channel_id = l.channel_id
    WHERE (l.is_open OR NOT p_open_only)
      AND (p_error_type IS NULL OR l.error_type = p_error_type)
    ORDER BY l.created_at DESC, l.publication_id
    LIMIT p_limit
$$;
