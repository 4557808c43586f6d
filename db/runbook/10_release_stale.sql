-- 10. Emergency: take deliveries back from workers that will not finish them. They are due again in 15 seconds.
--
-- Takes only deliveries whose lease has expired; with force all that are claimed or sending, so use force only when
-- every dispatcher of this workspace is stopped. A delivery that may have been sent is held if its channel is
-- configured so: resolve_ambiguous(workspace, delivery, 'sent' | 'resend', operator, reason).
--
-- The same as a command: autopost queue release
--
-- Watch afterwards: manual_requeue (reason manual_stuck_release), held, then send_attempt and sent; stale_commit
--                   from a worker that was still running; sending_lease_expired and claimed_lease_expired
--                   from the monitor's own jobs

\set ON_ERROR_STOP on
-- Change these before pasting, or pass them: psql -v workspace_id=… -f 10_release_stale.sql
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

-- Recounts counters and due times: no rows means that all were right.
SELECT channel_id, what, was, is_now
FROM recount(:'workspace_id');
