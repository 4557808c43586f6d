-- register_pull_refusals(workspace_id, source_id, refused) -> those that are new
--
-- Gives invalid items of a source their receipts, so that they are never read again.
--
-- refused       [{"source_ref", "code", "message", …}]; of items with the same source_ref the first counts. With
--               "quiet": true it is only counted, as passed_over: what a new source is not to post
-- Locks         pull_receipts; the caller holds the row of the source
CREATE OR REPLACE FUNCTION register_pull_refusals(
    p_workspace_id uuid,
    p_source_id text,
    p_refused jsonb,
    OUT refused jsonb,
    OUT passed_over int
)
LANGUAGE sql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    WITH items AS MATERIALIZED (
        SELECT DISTINCT ON (f.item ->> 'source_ref') f.item, f.item ->> 'source_ref' AS source_ref
        FROM jsonb_array_elements(p_refused) WITH ORDINALITY AS f (item, place)
        ORDER BY f.item ->> 'source_ref', f.place
    ), registered AS (
        INSERT INTO pull_receipts AS r (workspace_id, source_id, source_ref, received_at)
        SELECT p_workspace_id, p_source_id, i.source_ref, clock_timestamp()
        FROM items i
        ON CONFLICT (workspace_id, source_id, source_ref) DO UPDATE
        SET received_at = excluded.received_at,
            released_at = NULL
        WHERE r.released_at IS NOT NULL
        RETURNING r.source_ref
    )
    SELECT coalesce(jsonb_agg(i.item) FILTER (WHERE NOT i.item ? 'quiet'), '[]'),
           count(*) FILTER (WHERE i.item ? 'quiet')::int
    FROM items i
    JOIN registered USING (source_ref)
$$;
