-- 4. Requeue deliveries that failed permanently, after the cause is fixed.
--
-- Deliveries that failed with their channel are refused (channel_disabled) until it is enabled: 06_enable_channel.
-- Deliveries without a plan are refused too (nothing_to_send): post the content again.
--
-- The same as a command: autopost queue requeue DELIVERY…
--
-- Watch afterwards: manual_requeue, then send_attempt and sent; failed_permanent and channel_paused when the cause
--                   still exists

\set ON_ERROR_STOP on
-- Change these before pasting, or pass them: psql -v workspace_id=… -f 04_requeue_failed_permanent.sql
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

-- A dry run: what would be requeued of all of them. Filter by code with p_code => '…'.
SELECT verdict, count(*)
FROM requeue_matching(:'workspace_id', :'operator', :'reason', p_status => 'failed_permanent', p_dry_run => true)
GROUP BY verdict;

BEGIN;
SELECT delivery_id, verdict, twin_id, attempt, max_attempts, opens_at
FROM requeue(:'workspace_id', :'delivery_ids', :'operator', :'reason', :attempts, :force);
COMMIT;
