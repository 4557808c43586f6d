-- 8. Switch every channel of a rate group on again, each with its catch-up policy.
--
-- An empty platform means the group of this name on each of them. The group's rate holds: a large backlog goes out at its pace, not at once.
--
-- The same as a command: autopost channel enable --rate-group GROUP
--
-- Watch afterwards: channel_enabled for each channel, catch_up_dropped for each post left out, then send_attempt
--                   and sent; channel_paused where a channel still fails

\set ON_ERROR_STOP on
-- Change these before you paste, or give them: psql -v workspace_id=… -f 08_enable_group.sql
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
