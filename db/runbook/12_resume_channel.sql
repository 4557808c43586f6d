-- 12. End a pause, whoever set it. The error streak stays, so the next failure of the channel counts on.
--
-- Its catch-up policy decides what of the backlog is still sent. A channel that is switched off stays so
-- (still_disabled): 06_enable_channel.
--
-- The same as a command: autopost channel resume CHANNEL
--
-- Watch afterwards: channel_enabled, catch_up_dropped for each post left out, then send_attempt and sent;
--                   channel_paused when the channel still fails

\set ON_ERROR_STOP on
-- Change these before you paste, or give them: psql -v workspace_id=… -f 12_resume_channel.sql
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

BEGIN;
SELECT channel_id, verdict, dropped
FROM resume_channels(:'workspace_id', :'channel_id', NULL, :'operator', :'reason');
COMMIT;
