-- 13. End a hold: somebody has looked into the channel and knows whether the call that nobody answered arrived.
--
-- decision is `sent` (it did; provider_message_id is what was found there, empty when unknown) or `resend` (it did not,
-- and goes out again).
--
-- The same as a command: autopost queue resolve DELIVERY sent|resend
--
-- Watch afterwards: sent when it was the last call; else manual_requeue, then send_attempt and sent

\set ON_ERROR_STOP on
-- Change these before you paste, or give them: psql -v workspace_id=… -f 13_resolve_held.sql
\if :{?workspace_id}
\else
    \set workspace_id '00000000-0000-0000-0000-000000000000'
\endif
\if :{?delivery_id}
\else
    \set delivery_id '00000000-0000-0000-0000-000000000000'
\endif
\if :{?decision}
\else
    \set decision 'resend'
\endif
\if :{?provider_message_id}
\else
    \set provider_message_id ''
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
SELECT resolve_ambiguous(:'workspace_id', :'delivery_id', :'decision', :'operator', :'reason',
                         nullif(:'provider_message_id', ''));
COMMIT;
