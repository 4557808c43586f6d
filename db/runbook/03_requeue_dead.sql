-- 3. Bring dead deliveries back. attempt stays, and five more tries are allowed.
--
-- A delivery whose content is on its way to the channel again, or was sent there within the dedup window, is
-- refused (twin_in_flight, twin_sent) unless force is true. What nobody wants any more: skip() takes it out of the
-- `dead` alert and leaves it dead.
--
-- The same as a command: autopost queue requeue DELIVERY…
--
-- Watch afterwards: manual_requeue, then send_attempt and sent; retry_scheduled while it fails again, dead_letter
--                   when it fails for good

\set ON_ERROR_STOP on
-- Change these before you paste, or give them: psql -v workspace_id=… -f 03_requeue_dead.sql
\if :{?workspace_id}
\else
    \set workspace_id '00000000-0000-0000-0000-000000000000'
\endif
\if :{?delivery_ids}
\else
    \set delivery_ids '{00000000-0000-0000-0000-000000000000}'
\endif
\if :{?operator}
\else
    \set operator 'you@example.org'
\endif
\if :{?reason}
\else
    \set reason 'why you do it'
\endif
\if :{?attempts}
\else
    \set attempts '5'
\endif
\if :{?force}
\else
    \set force 'false'
\endif

-- What would come back if you asked for all of them; nothing is changed by this.
SELECT verdict, count(*)
FROM requeue_matching(:'workspace_id', :'operator', :'reason', p_status => 'dead', p_dry_run => true)
GROUP BY verdict;

BEGIN;
SELECT delivery_id, verdict, twin_id, attempt, max_attempts, opens_at
FROM requeue(:'workspace_id', :'delivery_ids', :'operator', :'reason', :attempts, :force);
COMMIT;
