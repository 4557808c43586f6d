-- 9. Give a channel another credential, and another rate group if the token has its own limit.
--
-- First a short pause, so that sends in progress can end. As long as there is one, the answer is `sending`: paste the
-- second half again. `bound` false means that credential_bindings has no secret for the new ref yet. An empty
-- new_rate_group keeps the old one. The pause ends by itself, so no catch-up policy is applied.
--
-- The same as a command: autopost auth rotate CHANNEL --auth-ref NEW
--
-- Watch afterwards: channel_paused, auth_rotated, then send_attempt and sent; failed_permanent with 401 and
--                   channel_paused when the new credential is wrong

\set ON_ERROR_STOP on
-- Change these before pasting, or pass them: psql -v workspace_id=… -f 09_rotate_auth.sql
\if :{?workspace_id}
\else
    \set workspace_id '00000000-0000-0000-0000-000000000000'
\endif
\if :{?channel_id}
\else
    \set channel_id '00000000-0000-0000-0000-000000000000'
\endif
\if :{?new_auth_ref}
\else
    \set new_auth_ref 'telegram-second'
\endif
\if :{?new_rate_group}
\else
    \set new_rate_group ''
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

SELECT verdict, paused_until
FROM pause_channels(:'workspace_id', :'channel_id', NULL, :'operator', :'reason', '2 minutes');

BEGIN;
SELECT rotate_auth(:'workspace_id', :'channel_id', :'new_auth_ref', nullif(:'new_rate_group', ''), :'operator',
                   :'reason', :force);
COMMIT;
