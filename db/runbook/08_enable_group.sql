-- 8. Enable every channel of a rate group, each with its catch-up policy.
--
-- An empty platform selects the group of this name on every platform. The rate of the group still applies to a large
-- backlog.
--
-- The same as a command: autopost channel enable --rate-group GROUP
--
-- Watch afterwards: channel_enabled for each channel, catch_up_dropped for each dropped delivery, then send_attempt
--                   and sent; channel_paused where a channel still fails

\set ON_ERROR_STOP on
-- Change these before pasting, or pass them: psql -v workspace_id=… -f 08_enable_group.sql
\if :{?workspace_id}
\else
    \set workspace_id '00000000-0000-0000-0000-000000000000'
\endif
\if :{?rate_group}
\else
    \set rate_group 'telegram-main'
\endif
\if :{?platform}
\else
    \set platform ''
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
FROM enable_channels(:'workspace_id', NULL, :'rate_group', :'operator', :'reason', nullif(:'platform', ''));
COMMIT;
