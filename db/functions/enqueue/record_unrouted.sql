-- record_unrouted(workspace_id, posts, places, message_ids)
--
-- Writes one event per post at these places: no channel takes it. Such a post has no delivery. It has no message unless
-- its content was seen before.
--
-- message_ids  of the posts at these places; null where there is none
-- Appends      enqueue with the result error and the code no_channel
CREATE OR REPLACE FUNCTION record_unrouted(p_workspace_id uuid, p_posts post[], p_places int[], p_message_ids uuid[])
RETURNS void
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
BEGIN
    INSERT INTO events (workspace_id, message_id, action, result, error, meta)
    SELECT p_workspace_id, u.message_id, 'enqueue', 'error',
           jsonb_build_object('code', 'no_channel', 'message', 'no enabled channel takes this post'),
           event_meta(p.trace_id, p.run_id, jsonb_build_object(
               'post_id', p.post_id,
               'source_id', p.source ->> 'source_id',
               'source_ref', quoted(p.source_ref, 256),
               'tags', quoted(array_to_string(p.tags, ', '), 500)))
    FROM unnest(p_places, p_message_ids) AS u (place, message_id)
    JOIN unnest(p_posts) AS p USING (place);
END $$;
