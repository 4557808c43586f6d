-- 5. Pause a channel. Queued deliveries are kept, and new posts are queued behind them.
--
-- A longer existing pause is kept. For a whole rate group: NULL as the channel, followed by the name of the group.
--
-- The same as a command: autopost channel pause CHANNEL
--
-- Watch afterwards: channel_paused; no send_attempt of this channel except those that had begun

\set ON_ERROR_STOP on
-- Change these before pasting, or pass them: psql -v workspace_id=… -f 05_pause_channel.sql
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
