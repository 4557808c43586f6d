-- publication_standing(publication, version) -> 'due' | 'already' | 'stale': what a command for this version finds
--
-- due        its delivery is to be made
-- already    its delivery exists, or has ended
-- stale      another version, or it is not to be published now
CREATE OR REPLACE FUNCTION publication_standing(p_publication publications, p_version int)
RETURNS text
LANGUAGE sql
IMMUTABLE PARALLEL SAFE
AS $$
    SELECT CASE
        WHEN (p_publication).version IS DISTINCT FROM p_version THEN 'stale'
        WHEN (p_publication).delivery_id IS NOT NULL THEN 'already'
        WHEN (p_publication).status = 'publishing' THEN 'due'
        ELSE 'stale'
    END
$$;
