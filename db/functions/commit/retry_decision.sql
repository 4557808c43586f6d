-- retry_decision(category, code, ambiguous, on_ambiguous, attempt, max_attempts, policy, cancel_asked)
-- -> 'permanent' | 'hold' | 'cancel' | 'dead' | 'retry'
--
-- What follows a failure. No other function decides this.
--
-- permanent the category says that another attempt would fail too. Of a publication an album that was refused because of
--           one item is sent again as a whole: nobody is there to post it anew
-- hold      the platform may have the post, and a person must decide: the channel says so (on_ambiguous = 'hold'), it is
--           a publication, or a cancel was asked for meanwhile
-- cancel    it certainly did not go out, and a cancel was asked for meanwhile
-- dead      the attempts are used up
-- retry     another attempt follows
CREATE OR REPLACE FUNCTION retry_decision(
    p_category text,
    p_code text,
    p_ambiguous boolean,
    p_on_ambiguous text,
    p_attempt int,
    p_max_attempts int,
    p_policy text,
    p_cancel_asked boolean
)
RETURNS text
LANGUAGE sql
IMMUTABLE PARALLEL SAFE
AS $$
    SELECT CASE
        WHEN p_category = 'PERMANENT' AND NOT (p_policy = 'publication' AND p_code = 'album_refused') THEN 'permanent'
        WHEN p_ambiguous AND (p_on_ambiguous = 'hold' OR p_policy = 'publication' OR p_cancel_asked) THEN 'hold'
        WHEN p_cancel_asked THEN 'cancel'
        WHEN p_attempt >= p_max_attempts THEN 'dead'
        ELSE 'retry'
    END
$$;
