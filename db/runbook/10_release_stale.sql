-- 10. Emergency: take back what workers hold and will not finish. It is due again in 15 seconds.
--
-- Only what a lease no longer covers; with force everything that is claimed or sending, so only when every
-- dispatcher of this workspace is known to be gone. What may have been sent, in a channel that wants a human to
-- decide, is held: resolve_ambiguous(workspace, delivery, 'sent' | 'resend', operator, reason).
--
-- The same as a command: autopost queue release
--
-- Watch afterwards: manual_requeue (reason manual_stuck_release), held, then send_attempt and sent; stale_commit
--                   from a worker that was not gone; sending_lease_expired and claimed_lease_expired
--                   from the monitor's own rounds

\set ON_ERROR_STOP on
-- Change these before you paste, or give them: psql -v workspace_id=… -f 10_release_stale.sql
\if :{?workspace_id}
\else
    \set workspace_id '00000000-0000-0000-0000-000000000000'
\endif
\if :{?operator}
\else
    \set operator 'you@example.org'
\endif
\if :{?reason}
\else
    \set reason 'why you do it'
\endif
\if :{?force}
\else
    \set force 'false'
\endif

BEGIN;
SELECT delivery_id, channel_id, was, attempt, verdict
FROM release_stale(:'workspace_id', :'operator', :'reason', :force);
COMMIT;

-- Places and due times, from the truth: no rows means that all was right.
SELECT channel_id, what, was, is_now
FROM recount(:'workspace_id');
