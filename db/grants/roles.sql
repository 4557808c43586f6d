-- Who may do what. A service executes its functions and nothing else: no table, no view of another's, no DDL.
-- The owner of the schema is a member of each role, so one database URL serves every service (they SET ROLE).

DO $$
DECLARE
    _role text;
BEGIN
    FOREACH _role IN ARRAY '{autopost_ingest,autopost_dispatcher,autopost_monitor,autopost_bot,autopost_operator,
                             autopost_reader}'::text[]
    LOOP
        BEGIN
            EXECUTE format('CREATE ROLE %I NOLOGIN', _role);
        EXCEPTION WHEN duplicate_object OR unique_violation THEN
            NULL;
        END;
        IF NOT pg_has_role(current_user, _role, 'MEMBER') THEN
            EXECUTE format('GRANT %I TO CURRENT_USER', _role);
        END IF;
    END LOOP;
END $$;

-- New functions are everybody's unless this is said.
ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA public FROM PUBLIC;
REVOKE ALL ON ALL TABLES IN SCHEMA public FROM PUBLIC;
REVOKE CREATE ON SCHEMA public FROM PUBLIC;

GRANT USAGE ON SCHEMA public
    TO autopost_ingest, autopost_dispatcher, autopost_monitor, autopost_bot, autopost_operator, autopost_reader;

GRANT EXECUTE ON FUNCTION
    resolve_endpoint(text, text),
    admit_posts(uuid, uuid, jsonb, text[], boolean[], boolean),
    claim_pull_sources(int, interval, int, text),
    finish_pull(uuid, text, uuid, text, jsonb, interval, boolean),
    ingest_pull_chunk(uuid, text, uuid, uuid, jsonb, jsonb, jsonb, boolean, interval, boolean),
    unseen_pull_items(uuid, text, text[]),
    read_credentials(uuid, text, text[]),
    preview_post(uuid, uuid, jsonb, text),
    fail_push(uuid, uuid, text, text),
    flush_refusals(uuid, uuid),
    read_media_origins(uuid, text[]),
    fail_staged_post(uuid, uuid, uuid, jsonb, int, bigint),
    finish_media_fetch(uuid, text, uuid, text, text, text, text, bigint, int, int, text),
    finish_staged_post(uuid, uuid, uuid, jsonb, boolean, jsonb),
    lease_staged_posts(int, int, interval),
    note_media_put(uuid, text, uuid, text),
    read_staged_post(uuid, uuid),
    release_staged_post(uuid, uuid, uuid),
    renew_staged_post(uuid, uuid, uuid, interval),
    take_media_fetch(uuid, uuid, uuid, text),
    read_signing_secrets(uuid),
    store_bot_update(uuid, uuid, jsonb),
    refuse_ingress(uuid, uuid, text, event_action, text, jsonb, text, bigint),
    remember_media_origin(uuid, text, text, text, text, bigint, int, int, text)
    TO autopost_ingest;

GRANT EXECUTE ON FUNCTION
    claim_deliveries(uuid, uuid, int, interval, interval, timestamptz),
    commit_deliveries(uuid, jsonb, interval, int, double precision, uuid),
    commit_sent(uuid, uuid[], uuid[], text[], uuid),
    due_workspaces(int),
    forget_uploads(uuid, text, text, text[], text[]),
    keep_uploads(uuid, text, text, text[], text[], text[], interval[]),
    next_due_at(uuid),
    read_credentials(uuid, text, text[]),
    read_outcomes(uuid, uuid[], uuid[]),
    record_progress(uuid, uuid, uuid, int, text[]),
    renew_leases(uuid, uuid[], uuid[], interval),
    take_slot(uuid, uuid, uuid, interval, timestamptz, boolean, timestamptz),
    take_uploads(uuid, uuid, uuid, text, text, text[], text[])
    TO autopost_dispatcher;

GRANT EXECUTE ON FUNCTION
    abandon_notices(text[], interval),
    active_workspaces(),
    adopt_stream(uuid, timestamptz, bigint, bigint, bigint, interval),
    advance_relay(uuid, bigint, bigint),
    bury_media(uuid, text, uuid),
    checkpoint_deliveries(text, int),
    count_alerts(),
    doom_media(text, interval, interval, bigint, interval, jsonb, int),
    doom_strays(text, interval, int),
    drop_event_partition(text, interval, boolean),
    end_round(text, uuid),
    ensure_event_partitions(interval),
    expired_event_partitions(interval),
    judge_alerts(jsonb, interval, interval, text[], boolean),
    next_audit_events(uuid, int),
    next_notice(text),
    open_relay(uuid),
    orphan_events(uuid),
    partitions_ahead(),
    queue_depth(),
    reconcile_events(int, int),
    recount(uuid),
    recover_claimed_leases(uuid, timestamptz, interval, int),
    recover_sending_leases(uuid, timestamptz, int, double precision),
    recover_staged_posts(interval, int, int),
    relay_lag(interval),
    resolve_status_token(text),
    retain_alerts(interval, int),
    retain_bot_actions(interval, int),
    retain_bot_inbox(interval, int),
    retain_bot_logs(interval, int),
    retain_bot_outbox(interval, int),
    retain_bot_state(interval, int),
    retain_commands(interval, int),
    retain_deliveries(interval, jsonb, int),
    retain_ingest_runs(interval, int),
    retain_media_blobs(interval, jsonb, int),
    retain_media_fetches(interval, int),
    retain_messages(interval, jsonb, int),
    retain_pull_receipts(interval, int),
    retain_receipts(int),
    retain_staged_posts(interval, int),
    settle_notice(uuid, uuid, int, text, text, text, interval, interval),
    snapshot(uuid, interval, int, boolean),
    status_report(uuid, interval),
    stuck_bot_replies(interval),
    stuck_staged_posts(interval, interval),
    take_round(text, uuid, interval, interval),
    tell_snapshot(interval, text[])
    TO autopost_monitor;

-- People with a reason. What they do is told by the functions; quarantine is what they look at first.
GRANT EXECUTE ON FUNCTION
    audit_cursor(),
    bind_credential(uuid, text, text, text, bytea, text, text, text),
    disable_channels(uuid, uuid, text, text, text, text),
    enable_channels(uuid, uuid, text, text, text, text),
    issue_status_token(text, uuid, text, interval, text, text),
    judge_messages(uuid[], timestamptz[], uuid[], bigint[], text[], timestamptz),
    list_channels(uuid),
    list_credentials(uuid),
    list_status_tokens(),
    list_workspaces(),
    match_given_up(uuid, delivery_status, text, uuid, uuid, timestamptz, timestamptz, timestamptz, uuid, int),
    note_payload_access(uuid, text, text, text, interval),
    pause_channels(uuid, uuid, text, text, text, interval, text),
    recent_errors(uuid, interval, int),
    recount(uuid),
    release_stale(uuid, text, text, boolean, interval),
    requeue(uuid, uuid[], text, text, int, boolean, boolean),
    requeue_matching(uuid, text, text, delivery_status, text, uuid, uuid, timestamptz, timestamptz, int, boolean, boolean,
                     int),
    resolve_ambiguous(uuid, uuid, text, text, text, text),
    resume_channels(uuid, uuid, text, text, text, text),
    revoke_status_token(text, text, text),
    rotate_auth(uuid, uuid, text, text, text, text, boolean),
    skip(uuid, uuid[], text, text),
    snapshot(uuid, interval, int, boolean),
    verify_channels(uuid, int),
    verify_deliveries(uuid, uuid, int, int, interval),
    verify_events(uuid, timestamptz, uuid, int, timestamptz, jsonb, int),
    verify_queue(uuid, uuid, int, int),
    verify_size(uuid)
    TO autopost_operator;
GRANT SELECT ON quarantine TO autopost_operator;

-- Whoever asks why: an operator about every workspace, a reader about its own (sees_workspace).
GRANT EXECUTE ON FUNCTION
    why(text, uuid, int, timestamptz),
    why_channel(uuid, uuid[], timestamptz, interval),
    why_delivery(uuid, uuid[], timestamptz, interval, interval)
    TO autopost_operator, autopost_reader;

GRANT EXECUTE ON FUNCTION
    bot_backlog(),
    read_credentials(uuid, text, text[])
    TO autopost_bot;
