-- own_attempts(attempts, channel_id)
-- -> {"max_attempts"} for the event of a delivery whose channel has its own number
--
-- attempts     as attempts_by_channel gives it
CREATE OR REPLACE FUNCTION own_attempts(p_attempts jsonb, p_channel_id uuid)
RETURNS jsonb
LANGUAGE sql
IMMUTABLE PARALLEL SAFE
AS $$
    SELECT CASE WHEN p_attempts ? p_channel_id::text
                THEN jsonb_build_object('max_attempts', p_attempts -> p_channel_id::text)
                ELSE '{}' END
$$;
