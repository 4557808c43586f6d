-- message_link(platform, target_id, provider_message_id) -> the address of a message on the web; null where it has none
CREATE OR REPLACE FUNCTION message_link(p_platform text, p_target_id text, p_provider_message_id text)
RETURNS text
LANGUAGE sql
IMMUTABLE PARALLEL SAFE
AS $$
    SELECT CASE
        WHEN p_platform <> 'telegram' OR p_provider_message_id !~ '^[0-9]+$' THEN NULL
        WHEN p_target_id ~ '^-100[0-9]+$'
            THEN format('https://t.me/c/%s/%s', substr(p_target_id, 5), p_provider_message_id)
        WHEN p_target_id ~ '^@[A-Za-z0-9_]+$'
            THEN format('https://t.me/%s/%s', substr(p_target_id, 2), p_provider_message_id)
    END
$$;
