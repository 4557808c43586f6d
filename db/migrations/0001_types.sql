-- Words that the whole schema shares.

CREATE TYPE workspace_status AS ENUM ('active', 'paused', 'disabled');

CREATE TYPE delivery_status AS ENUM (
    'queued', 'claimed', 'sending', 'sent', 'retry', 'deduped', 'failed_permanent', 'dead'
);

-- A closed list: a new action is a migration, and a line in autopost_contracts.events.
CREATE TYPE event_action AS ENUM (
    'enqueue', 'validation_failed', 'send_attempt', 'sent', 'retry_scheduled', 'dedup_suppressed',
    'failed_permanent', 'dead_letter', 'channel_paused', 'channel_disabled', 'channel_enabled',
    'message_tag_mismatch', 'sending_lease_expired', 'claimed_lease_expired', 'manual_requeue', 'auth_rotated',
    'ingress_rate_limited', 'ingress_payload_rejected', 'ingress_dedup_dropped', 'ingress_config_error',
    'stale_commit', 'checkpoint', 'catch_up_dropped', 'channel_migrated', 'payload_accessed', 'manual_skip',
    'media_failed', 'held',
    'bot_replied', 'bot_reply_failed',
    'publication_scheduled', 'publication_published', 'publication_failed', 'publication_paused'
);

CREATE TYPE event_result AS ENUM ('ok', 'error');

-- Time-ordered ids where the server can make them, random ones before PostgreSQL 18.
DO $$
BEGIN
    IF current_setting('server_version_num')::int >= 180000 THEN
        EXECUTE 'CREATE FUNCTION new_id() RETURNS uuid LANGUAGE sql VOLATILE PARALLEL SAFE AS ''SELECT uuidv7()''';
    ELSE
        EXECUTE 'CREATE FUNCTION new_id() RETURNS uuid LANGUAGE sql VOLATILE PARALLEL SAFE AS ''SELECT gen_random_uuid()''';
    END IF;
END $$;
