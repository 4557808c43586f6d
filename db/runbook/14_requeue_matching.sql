-- 14. Requeue all dead letters that match: first the count of all, then a thousand, oldest first.
--
-- An empty value matches any. Skipped deliveries are left out, and those dropped by a catch-up policy unless their code
-- is given. Refused ones do not count towards the limit: paste again while `requeued` is not 0.
--
-- The same as a command: autopost queue requeue --status … --code … --channel … --message … --since … --until …
--
-- Watch afterwards: manual_requeue, then send_attempt and sent; dead_letter and failed_permanent when the cause
--                   still exists

\set ON_ERROR_STOP on
-- Change these before pasting, or pass them: psql -v workspace_id=… -f 14_requeue_matching.sql
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
\if :{?channel_id}
\else
    \set channel_id ''
\endif
\if :{?message_id}
\else
    \set message_id ''
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
\if :{?limit}
\else
    \set limit '1000'
\endif

SELECT verdict, count(*)
FROM requeue_matching(:'workspace_id', :'operator', :'reason', nullif(:'status', '')::delivery_status,
                      nullif(:'code', ''), nullif(:'channel_id', '')::uuid, nullif(:'message_id', '')::uuid,
                      :'since', :'until', :attempts, :force, p_dry_run => true)
GROUP BY verdict;

BEGIN;
SELECT verdict, count(*)
FROM requeue_matching(:'workspace_id', :'operator', :'reason', nullif(:'status', '')::delivery_status,
                      nullif(:'code', ''), nullif(:'channel_id', '')::uuid, nullif(:'message_id', '')::uuid,
                      :'since', :'until', :attempts, :force, p_dry_run => false, p_limit => :limit)
GROUP BY verdict;
COMMIT;
