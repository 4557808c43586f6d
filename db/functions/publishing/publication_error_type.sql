-- publication_error_type(code) -> the error_type of a publication whose delivery ended with this code
--
-- The table of errors, in this function only; settle_publication says what follows from each.
CREATE OR REPLACE FUNCTION publication_error_type(p_code text)
RETURNS text
LANGUAGE sql
IMMUTABLE PARALLEL SAFE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    SELECT CASE
        WHEN p_code IN ('bot_kicked', 'bot_blocked', 'not_a_member', 'not_started', 'chat_not_found', 'chat_deleted',
                        'chat_denied', 'user_deactivated', 'unauthorized', 'token_unallowed') THEN 'bot_not_in_channel'
        WHEN p_code IN ('no_rights', 'forbidden', 'thread_not_found') THEN 'channel_restricted'
        WHEN p_code = 'rate_limited' THEN 'rate_limit'
        WHEN p_code IN ('media_expired', 'media_missing_origin') THEN 'file_id_expired'
        WHEN p_code = 'album_refused' THEN 'media_group'
        WHEN p_code IN ('message_too_long', 'message_empty', 'markup_invalid', 'buttons_invalid', 'validation_failed',
                        'album_invalid', 'attachments_invalid', 'bad_request') OR p_code LIKE 'media\_%' THEN 'content'
        WHEN p_code = 'catch_up_dropped' THEN 'missed'
        ELSE 'platform'
    END
$$;
