-- 5. Pause a channel. What is queued for it is kept, and new posts are queued behind it.
--
-- A longer pause that is there already stands. A whole rate group: null for the channel, the group's name after it.
--
-- The same as a command: autopost channel pause CHANNEL
--
-- Watch afterwards: channel_paused; no send_attempt of this channel but those that had begun

\set ON_ERROR_STOP on
-- Change these before you paste, or give them: psql -v workspace_id=… -f 05_pause_channel.sql
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
\if :{?pause_for}
\else
    \set pause_for '1 hour'
\endif

BEGIN;
SELECT channel_id, verdict, paused_until
FROM pause_channels(:'workspace_id', :'channel_id', NULL, :'operator', :'reason', :'pause_for');
COMMIT;

SELECT channel_id, title, state, until, reason, waiting, oldest_at
FROM quarantine
WHERE workspace_id = :'workspace_id'
  AND channel_id = :'channel_id';
