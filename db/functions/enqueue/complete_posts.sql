-- complete_posts(posts) -> the posts that are complete; the others have media still to be fetched
CREATE OR REPLACE FUNCTION complete_posts(p_posts post[])
RETURNS post[]
LANGUAGE sql
IMMUTABLE PARALLEL SAFE
AS $$
    SELECT ARRAY(SELECT p FROM unnest(p_posts) AS p WHERE p.request IS NULL)
$$;
