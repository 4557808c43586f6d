-- 7. Disable every channel of a rate group, such as for a revoked token or to stop a platform.
--
-- An empty platform selects the group of this name on every platform. Queued deliveries are kept; new posts are not
-- routed to disabled channels.
--
-- The same as a command: autopost channel disable --rate-group GROUP
--
-- Watch afterwards: channel_disabled for each channel; no send_attempt except those that had begun

\set ON_ERROR_STOP on
-- Change these before pasting, or pass them: psql -v workspace_id=… -f 07_disable_group.sql
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
