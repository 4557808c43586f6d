-- 2. What broke: the errors of the last half hour, the newest first, then the same by code.
--
-- Read by the owner of the schema; snapshot() has the same list by code for who may only execute.
--
-- Watch afterwards: nothing: nothing was changed

\set ON_ERROR_STOP on
-- Change these before you paste, or give them: psql -v workspace_id=… -f 02_recent_errors.sql
\if :{?workspace_id}
\else
    \set workspace_id '00000000-0000-0000-0000-000000000000'
\endif
\if :{?window}
\else
    \set window '30 minutes'
\endif

SELECT ts, action, channel_id, delivery_id, attempt, error, meta
FROM events
WHERE workspace_id = :'workspace_id'
  AND ts >= now() - :'window'::interval
  AND result = 'error'
ORDER BY ts DESC
LIMIT 200;

SELECT error ->> 'code' AS code, error ->> 'scope' AS scope, action, count(*), max(ts) AS last_at
FROM events
WHERE workspace_id = :'workspace_id'
  AND ts >= now() - :'window'::interval
  AND result = 'error'
GROUP BY 1, 2, 3
ORDER BY count(*) DESC;
