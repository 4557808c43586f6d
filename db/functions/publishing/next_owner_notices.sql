-- next_owner_notices(targets, limit) -> notices for owners of publications that are due now
--
-- targets      those that this installation can use; the others wait
-- Order        one notice per owner, the oldest: an owner who cannot be reached costs one try. Workspaces take turns.
CREATE OR REPLACE FUNCTION next_owner_notices(p_targets text[], p_limit int)
RETURNS TABLE (
    workspace_id uuid,
    publication_id uuid,
    version int,
    code text,
    owner text,
    target text,
    attempts int,
    notice jsonb
)
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT f.workspace_id, f.publication_id, f.version, f.code, f.owner, f.target, f.attempts, f.notice
    FROM (
        SELECT n.*, row_number() OVER (PARTITION BY n.workspace_id ORDER BY n.next_try_at) AS turn
        FROM (
            SELECT DISTINCT ON (n.workspace_id, n.owner) n.*
            FROM publication_notices n
            JOIN workspaces w
              ON w.workspace_id = n.workspace_id
             AND w.status <> 'disabled'
            WHERE n.told_at IS NULL
              AND n.given_up_at IS NULL
              AND n.next_try_at <= clock_timestamp()
              AND n.target = ANY (p_targets)
            ORDER BY n.workspace_id, n.owner, n.created_at, n.publication_id, n.version, n.code
        ) AS n
    ) AS f
    ORDER BY f.turn, f.next_try_at
    LIMIT p_limit
$$;
