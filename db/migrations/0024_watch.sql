-- The alert of posts that are stuck knows the deadline that is configured, as the gauge does.
-- squawk-ignore ban-drop-function
DROP FUNCTION IF EXISTS condition_staged_posts(interval);
