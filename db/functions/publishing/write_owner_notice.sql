-- write_owner_notice(publication) -> void: the owner is to be told that it is paused or failed
--
-- Once per version and code: a publication that fails again in the same way tells nothing new. What the notice says
-- is fixed here, so it is of the moment that it tells of: nothing of the post, no token, no file id.
--
-- Locks     publication_notices by key
CREATE OR REPLACE FUNCTION write_owner_notice(p_publication publications)
RETURNS void
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
DECLARE
    _code text := coalesce(p_publication.pause_code, p_publication.last_error ->> 'error_type', 'failed');
BEGIN
    IF owner_target(p_publication.owner) IS NULL THEN
        RETURN;
    END IF;
    INSERT INTO publication_notices (workspace_id, publication_id, version, code, owner, target, notice)
    SELECT p_publication.workspace_id, p_publication.publication_id, p_publication.version, _code,
           p_publication.owner, owner_target(p_publication.owner),
           jsonb_strip_nulls(jsonb_build_object(
               'status', p_publication.status, 'code', _code, 'at', utc_text(clock_timestamp()),
               'scheduled_at', utc_text(p_publication.scheduled_at), 'timezone', p_publication.timezone,
               'channel', jsonb_build_object('channel_id', c.channel_id, 'platform', c.platform,
                                             'title', quoted(coalesce(c.title, c.target_id))),
               'error', shown_error(p_publication.last_error)))
    FROM channels c
    WHERE c.workspace_id = p_publication.workspace_id
      AND c.channel_id = p_publication.channel_id
    ON CONFLICT DO NOTHING;
END $$;
