-- refuse_staging(workspace_id, posts, nowhere) -> an answer for each post that is not staged: no channel takes it
--
-- Nothing is fetched for it. Its own tags route it: its content is known only when its media is.
--
-- nowhere      that of route_posts; names posts without media to fetch as well, which are skipped
-- Appends      those of record_unrouted
CREATE OR REPLACE FUNCTION refuse_staging(p_workspace_id uuid, p_posts post[], p_nowhere int[])
RETURNS post_answer[]
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
DECLARE
    _places int[] := ARRAY(
        SELECT p.place FROM unnest(p_posts) AS p WHERE p.request IS NOT NULL AND p.place = ANY (p_nowhere));
BEGIN
    PERFORM record_unrouted(p_workspace_id, p_posts, _places, '{}');
    RETURN ARRAY(SELECT (u.place, NULL, true, 0, 0, 0, 0, NULL)::post_answer FROM unnest(_places) AS u (place));
END $$;
