-- channels_of(workspace_id, channel_id, rate_group, platform) -> the channels that an operator named: one, or a group
--
-- platform     null: the group of this name on every platform
-- Empty when there are none. Raises AP011 unless exactly one of channel and group is given: no group by mistake.
CREATE OR REPLACE FUNCTION channels_of(
    p_workspace_id uuid,
    p_channel_id uuid,
    p_rate_group text,
    p_platform text DEFAULT NULL
)
RETURNS uuid[]
LANGUAGE plpgsql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
BEGIN
    IF (p_channel_id IS NULL) = (p_rate_group IS NULL) THEN
        RAISE EXCEPTION 'give one channel or one rate group'
            USING ERRCODE = 'AP011', HINT = 'exactly one of channel_id and rate_group';
    END IF;
    RETURN ARRAY(
        SELECT c.channel_id
        FROM channels c
        WHERE c.workspace_id = p_workspace_id
          AND (c.channel_id = p_channel_id OR c.rate_group = p_rate_group)
          AND (p_platform IS NULL OR c.platform = p_platform)
        ORDER BY c.channel_id
    );
END $$;
