-- 6. Enable a channel: ends its pause too, and resets its error streak.
--
-- Its catch-up policy decides which part of the backlog is still sent; dropped deliveries end failed_permanent, code
-- catch_up_dropped. resume_channels, with the same arguments, ends only the pause.
--
-- The same as a command: autopost channel enable CHANNEL
--
-- Watch afterwards: channel_enabled, catch_up_dropped for each dropped delivery, then send_attempt and sent;
--                   channel_paused when the channel still fails

\set ON_ERROR_STOP on
-- Change these before pasting, or pass them: psql -v workspace_id=… -f 06_enable_channel.sql
\if :{?workspace_id}
\else
    \set workspace_id '00000000-0000-0000-0000-000000000000'
\endif
\if :{?channel_id}
\else
    \set channel_id '00000000-0000-0000-0000-000000000000'
\endif
\if :{?operator}
\else
    \set operator 'you@example.org'
\endif
\if :{?reason}
\else
    \set reason 'why you do it'
\endif

-- The backlog, and the policy by which it will be sent or dropped.
SELECT channel_id, title, state, since, until, reason, waiting, held, oldest_at, last_seen_at, catch_up
FROM quarantine
WHERE workspace_id = :'workspace_id'
  AND channel_id = :'channel_id';

BEGIN;
SELECT channel_id, verdict, dropped
FROM enable_channels(:'workspace_id', :'channel_id', NULL, :'operator', :'reason');
COMMIT;
