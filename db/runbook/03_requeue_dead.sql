-- 3. Requeue dead deliveries. attempt is kept, and five more attempts are allowed.
--
-- A delivery whose content is in flight to the channel, or was sent there within the dedup window, is
-- refused (twin_in_flight, twin_sent) unless force is true. For deliveries that are not needed any more: skip() removes
-- them from the `dead` alert and leaves them dead.
--
-- The same as a command: autopost queue requeue DELIVERY…
--
-- Watch afterwards: manual_requeue, then send_attempt and sent; retry_scheduled while it fails again, dead_letter
--                   when it fails permanently

\set ON_ERROR_STOP on
-- Change these before pasting, or pass them: psql -v workspace_id=… -f 03_requeue_dead.sql
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

-- A dry run: what would be requeued of all dead deliveries.
SELECT verdict, count(*)
FROM requeue_matching(:'workspace_id', :'operator', :'reason', p_status => 'dead', p_dry_run => true)
GROUP BY verdict;

BEGIN;
SELECT delivery_id, verdict, twin_id, attempt, max_attempts, opens_at
FROM requeue(:'workspace_id', :'delivery_ids', :'operator', :'reason', :attempts, :force);
COMMIT;
