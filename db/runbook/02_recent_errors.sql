-- 2. Recent errors: those of the last half hour, newest first, then the same by code.
--
-- Needs the execute rights of autopost_operator.
--
-- The same as a command: autopost queue errors
--
-- Watch afterwards: nothing: nothing was changed

\set ON_ERROR_STOP on
-- Change these before pasting, or pass them: psql -v workspace_id=… -f 02_recent_errors.sql
\if :{?workspace_id}
\else
    \set workspace_id '00000000-0000-0000-0000-000000000000'
\endif
\if :{?window}
\else
    \set window '30 minutes'
\endif

SELECT ts, action, channel_id, channel_title, delivery_id, attempt, error, meta
FROM recent_errors(:'workspace_id', :'window', 200);

SELECT error ->> 'code' AS code, error ->> 'scope' AS scope, action, count(*), max(ts) AS last_at
FROM recent_errors(:'workspace_id', :'window', 10000)
GROUP BY 1, 2, 3
ORDER BY count(*) DESC;
