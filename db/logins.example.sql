-- One login for each service, and one for each person or tool that reads. Run once, after `autopost migrate`, by whoever
-- owns the schema and may create roles; then give each login a password (\password) or a certificate.
--
-- The role and the limits belong to the login: a pooler drops what a client asks for when it connects. The limits are
-- those that a service asks for by itself without a pooler. A service refuses to start in a role that is not its own.

CREATE ROLE autopost_ingest_login LOGIN NOINHERIT IN ROLE autopost_ingest;
ALTER ROLE autopost_ingest_login SET role = 'autopost_ingest';
ALTER ROLE autopost_ingest_login SET statement_timeout = '9s';
ALTER ROLE autopost_ingest_login SET lock_timeout = '5s';
ALTER ROLE autopost_ingest_login SET idle_in_transaction_session_timeout = '30s';
ALTER ROLE autopost_ingest_login SET timezone = 'UTC';
ALTER ROLE autopost_ingest_login SET jit = 'off';

CREATE ROLE autopost_dispatcher_login LOGIN NOINHERIT IN ROLE autopost_dispatcher;
ALTER ROLE autopost_dispatcher_login SET role = 'autopost_dispatcher';
ALTER ROLE autopost_dispatcher_login SET statement_timeout = '13500ms';
ALTER ROLE autopost_dispatcher_login SET lock_timeout = '5s';
ALTER ROLE autopost_dispatcher_login SET idle_in_transaction_session_timeout = '30s';
ALTER ROLE autopost_dispatcher_login SET timezone = 'UTC';
ALTER ROLE autopost_dispatcher_login SET jit = 'off';

CREATE ROLE autopost_monitor_login LOGIN NOINHERIT IN ROLE autopost_monitor;
ALTER ROLE autopost_monitor_login SET role = 'autopost_monitor';
ALTER ROLE autopost_monitor_login SET statement_timeout = '9s';
ALTER ROLE autopost_monitor_login SET lock_timeout = '5s';
ALTER ROLE autopost_monitor_login SET idle_in_transaction_session_timeout = '30s';
ALTER ROLE autopost_monitor_login SET timezone = 'UTC';
ALTER ROLE autopost_monitor_login SET jit = 'off';

CREATE ROLE autopost_bot_login LOGIN NOINHERIT IN ROLE autopost_bot;
ALTER ROLE autopost_bot_login SET role = 'autopost_bot';
ALTER ROLE autopost_bot_login SET statement_timeout = '9s';
ALTER ROLE autopost_bot_login SET lock_timeout = '5s';
ALTER ROLE autopost_bot_login SET idle_in_transaction_session_timeout = '30s';
ALTER ROLE autopost_bot_login SET timezone = 'UTC';
ALTER ROLE autopost_bot_login SET jit = 'off';

-- An operator. Add autopost_payloads for who may also read raw payloads, of every workspace.
CREATE ROLE ann LOGIN NOINHERIT IN ROLE autopost_operator;

-- A tool of one tenant: it reads the reader_* views and asks why. Its workspace is a row here, which no setting of its own
-- can change. With autopost_payloads as well it reads the raw payloads of this workspace and of no other.
CREATE ROLE demo_reader LOGIN IN ROLE autopost_reader;
ALTER ROLE demo_reader SET default_transaction_read_only = on;
ALTER ROLE demo_reader SET statement_timeout = '30s';
INSERT INTO reader_logins (workspace_id, login)
VALUES ('0de00000-0000-4000-8000-000000000001', 'demo_reader');
