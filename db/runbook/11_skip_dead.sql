-- 11. Mark dead deliveries as reviewed: they stay dead and no longer raise the `dead` alert.
--
-- A later requeue removes the mark; if the delivery dies again, the alert counts it again.
--
-- The same as a command: autopost queue skip DELIVERY…
--
-- Watch afterwards: manual_skip; nothing else happens to it

\set ON_ERROR_STOP on
-- Change these before pasting, or pass them: psql -v workspace_id=… -f 11_skip_dead.sql
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

BEGIN;
SELECT delivery_id, verdict, status
FROM skip(:'workspace_id', :'delivery_ids', :'operator', :'reason');
COMMIT;
