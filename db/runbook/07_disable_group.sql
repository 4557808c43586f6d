-- 7. Switch off every channel of a rate group: a token that was revoked, a platform that is to rest.
--
-- An empty platform means the group of this name on each of them. What is queued is kept; new posts are not routed there while they are off.
--
-- The same as a command: autopost channel disable --rate-group GROUP
--
-- Watch afterwards: channel_disabled for each channel; no send_attempt but those that had begun

\set ON_ERROR_STOP on
-- Change these before you paste, or give them: psql -v workspace_id=… -f 07_disable_group.sql
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
SELECT channel_id, verdict
FROM disable_channels(:'workspace_id', NULL, :'rate_group', :'operator', :'reason', nullif(:'platform', ''));
COMMIT;

SELECT channel_id, title, state, waiting, oldest_at
FROM quarantine
WHERE workspace_id = :'workspace_id'
  AND rate_group = :'rate_group';
