-- 6. Open a channel again: the switch-off, the pause and the error streak end.
--
-- Its catch-up policy decides what of the backlog is still sent; what is dropped ends failed_permanent, code
-- catch_up_dropped. resume_channels, with the same arguments, ends only the pause.
--
-- The same as a command: autopost channel enable CHANNEL
--
-- Watch afterwards: channel_enabled, catch_up_dropped for each post left out, then send_attempt and sent;
--                   channel_paused when the channel still fails

\set ON_ERROR_STOP on
-- Change these before you paste, or give them: psql -v workspace_id=… -f 06_enable_channel.sql
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

-- What has piled up, and by which policy it will be sent or dropped.
SELECT channel_id, title, state, since, until, reason, waiting, held, oldest_at, last_seen_at, catch_up
FROM quarantine
WHERE workspace_id = :'workspace_id'
  AND channel_id = :'channel_id';

BEGIN;
SELECT channel_id, verdict, dropped
FROM enable_channels(:'workspace_id', :'channel_id', NULL, :'operator', :'reason');
COMMIT;
