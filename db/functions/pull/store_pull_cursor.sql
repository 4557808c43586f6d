-- store_pull_cursor(workspace_id, source_id, run_id, cursor, last)
--
-- Merges a cursor into the one that the source has; a null removes a key.
--
-- last      the chunk is the last one of its response. etag and last_modified say that a response was read to its end.
--           So they are stored only with the last chunk, and not when an item was released since the run began: the
--           response was read while that item still had its receipt.
-- Locks     pull_cursors by key
CREATE OR REPLACE FUNCTION store_pull_cursor(
    p_workspace_id uuid,
    p_source_id text,
    p_run_id uuid,
    p_cursor jsonb,
    p_last boolean
)
RETURNS void
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
DECLARE
    _cursor jsonb := p_cursor;
BEGIN
    IF NOT p_last OR EXISTS (
        SELECT 1
        FROM ingest_runs i
        CROSS JOIN LATERAL (
            SELECT 1
            FROM pull_receipts r
            WHERE r.workspace_id = p_workspace_id
              AND r.source_id = p_source_id
              AND r.released_at >= i.started_at
            ORDER BY r.released_at -- by the index of released receipts, not the key of the source
            LIMIT 1
        ) AS r
        WHERE i.workspace_id = p_workspace_id
          AND i.run_id = p_run_id
    ) THEN
        _cursor := p_cursor - '{etag,last_modified}'::text[];
    END IF;
    INSERT INTO pull_cursors AS c (workspace_id, source_id, cursor_json, updated_at)
    VALUES (p_workspace_id, p_source_id, jsonb_strip_nulls(_cursor), clock_timestamp())
    ON CONFLICT (workspace_id, source_id) DO UPDATE
    SET cursor_json = jsonb_strip_nulls(c.cursor_json || _cursor),
        updated_at = excluded.updated_at;
END $$;
