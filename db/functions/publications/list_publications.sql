-- list_publications(workspace_id, from, to, statuses, channel_id, after, limit) -> publications by time, as documents
--
-- Those without a time come last, by id. `after` is the id of the last one of the page before.
CREATE OR REPLACE FUNCTION list_publications(
    p_workspace_id uuid,
    p_from timestamptz DEFAULT NULL,
    p_to timestamptz DEFAULT NULL,
    p_statuses text[] DEFAULT NULL,
    p_channel_id uuid DEFAULT NULL,
    p_after uuid DEFAULT NULL,
    p_limit int DEFAULT 100
)
RETURNS jsonb
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
AS $$
    SELECT coalesce(jsonb_agg(publication_document(l) ORDER BY coalesce(l.scheduled_at, 'infinity'), l.publication_id), '[]')
    FROM (
        SELECT p.*
        FROM publications p
        WHERE p.workspace_id = p_workspace_id
          AND p.version > 0 -- as the index has it
          AND (p_from IS NULL OR p.scheduled_at >= p_from)
          AND (p_to IS NULL OR p.scheduled_at < p_to)
          AND (p_statuses IS NULL OR p.status = ANY (p_statuses))
          AND (p_channel_id IS NULL OR p.channel_id = p_channel_id)
          -- Where the index begins and ends; the other conditions leave out those without a time.
          AND coalesce(p.scheduled_at, 'infinity') >= greatest(p_from, (
              SELECT coalesce(a.scheduled_at, 'infinity')
              FROM publications a
              WHERE a.workspace_id = p_workspace_id
                AND a.publication_id = p_after
          ), '-infinity')
          AND coalesce(p.scheduled_at, 'infinity') <= coalesce(p_to, 'infinity')
          AND (p_after IS NULL OR (coalesce(p.scheduled_at, 'infinity'), p.publication_id) > (
              SELECT coalesce(a.scheduled_at, 'infinity'), a.publication_id
              FROM publications a
              WHERE a.workspace_id = p_workspace_id
                AND a.publication_id = p_after
          ))
        ORDER BY coalesce(p.scheduled_at, 'infinity'), p.publication_id
        LIMIT p_limit
    ) AS l
$$;
