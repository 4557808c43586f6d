-- 12. End a pause, whatever set it. The error streak is kept, so the next failure of the channel continues it.
--
-- Its catch-up policy decides which part of the backlog is still sent. A disabled channel stays disabled
-- (still_disabled): 06_enable_channel.
--
-- The same as a command: autopost channel resume CHANNEL
--
-- Watch afterwards: channel_enabled, catch_up_dropped for each dropped delivery, then send_attempt and sent;
--                   channel_paused when the channel still fails

\set ON_ERROR_STOP on
-- Change these before pasting, or pass them: psql -v workspace_id=… -f 12_resume_channel.sql
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
