-- release_pull_receipt(workspace_id, source_id, source_ref) -> whether the item may come again
--
-- The item could not be posted: the next pull may deliver it again, and reads the whole response for it. After three
-- failures the receipt stays, so that an item that never succeeds is not requested for ever.
--
-- Changes   pull_receipts.failures, released_at; removes etag and last_modified from the cursor
-- Locks     pull_sources, pull_receipts, pull_cursors: each by key
CREATE OR REPLACE FUNCTION release_pull_receipt(p_workspace_id uuid, p_source_id text, p_source_ref text)
RETURNS boolean
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
DECLARE
    _most_failures CONSTANT int := 3;
    _released boolean;
BEGIN
    -- A chunk locks this row too: it runs entirely before or after this call, and then sees the release.
    PERFORM 1
    FROM pull_sources s
    WHERE s.workspace_id = p_workspace_id
      AND s.source_id = p_source_id
    FOR UPDATE;
    UPDATE pull_receipts r
    SET failures = r.failures + 1,
        released_at = CASE WHEN r.failures + 1 < _most_failures THEN clock_timestamp() END
    WHERE r.workspace_id = p_workspace_id
      AND r.source_id = p_source_id
      AND r.source_ref = p_source_ref
      AND r.released_at IS NULL
    RETURNING r.released_at IS NOT NULL
    INTO _released;
    IF _released THEN
        UPDATE pull_cursors c
        SET cursor_json = c.cursor_json - '{etag,last_modified}'::text[]
        WHERE c.workspace_id = p_workspace_id
          AND c.source_id = p_source_id;
    END IF;
    RETURN coalesce(_released, false);
END $$;
