-- 13. Resolve a hold: after a look into the channel, say whether the message of the unanswered call is there.
--
-- decision is `sent` (it is; provider_message_id is its id, empty if unknown) or `resend` (it is not; send it again).
--
-- The same as a command: autopost queue resolve DELIVERY sent|resend
--
-- Watch afterwards: sent when it was the last call; else manual_requeue, then send_attempt and sent

\set ON_ERROR_STOP on
-- Change these before pasting, or pass them: psql -v workspace_id=… -f 13_resolve_held.sql
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
