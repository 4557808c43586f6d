-- 1. The state of the queue: deliveries by status, the oldest due, and every channel that is not open, with the reason.
--
-- Reads live deliveries and dead letters. The numbers of sent deliveries come from the events of the last ten
-- minutes; snapshot(…, p_history => true) counts all of them, and reads all of them.
--
-- The same as a command: autopost queue snapshot, autopost channel list
--
-- Watch afterwards: nothing: nothing was changed

\set ON_ERROR_STOP on
-- Change these before pasting, or pass them: psql -v workspace_id=… -f 01_queue_snapshot.sql
\if :{?workspace_id}
\else
    \set workspace_id '00000000-0000-0000-0000-000000000000'
\endif

SELECT jsonb_pretty(snapshot(:'workspace_id'));

SELECT channel_id, title, state, since, until, reason, waiting, held, oldest_at
FROM quarantine
WHERE workspace_id = :'workspace_id'
ORDER BY waiting DESC;
