-- 14. Bring back everything that was given up and matches: first the count, then a thousand of them, the oldest first.
--
-- Empty status and code match any. What an operator has skipped is left out, and what a catch-up has dropped unless
-- its code is asked for. Paste again while `requeued` is not 0.
--
-- The same as a command: autopost queue requeue --status … --code … --since … --until …
--
-- Watch afterwards: manual_requeue, then send_attempt and sent; dead_letter and failed_permanent when the cause is
--                   still there

\set ON_ERROR_STOP on
-- Change these before you paste, or give them: psql -v workspace_id=… -f 14_requeue_matching.sql
\if :{?workspace_id}
\else
    \set workspace_id '00000000-0000-0000-0000-000000000000'
\endif
\if :{?status}
\else
    \set status 'dead'
\endif
\if :{?code}
\else
    \set code ''
\endif
\if :{?since}
\else
    \set since '-infinity'
\endif
\if :{?until}
\else
    \set until 'infinity'
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

SELECT verdict, count(*)
FROM requeue_matching(:'workspace_id', :'operator', :'reason', nullif(:'status', '')::delivery_status,
                      nullif(:'code', ''), NULL, :'since', :'until', :attempts, :force, p_dry_run => true)
GROUP BY verdict;

BEGIN;
SELECT verdict, count(*)
FROM requeue_matching(:'workspace_id', :'operator', :'reason', nullif(:'status', '')::delivery_status,
                      nullif(:'code', ''), NULL, :'since', :'until', :attempts, :force, p_dry_run => false)
GROUP BY verdict;
COMMIT;
