-- What the dispatcher may do: claim, send, commit.
GRANT EXECUTE ON FUNCTION
    adopt_policy(int, interval, interval, interval),
    check_writes(),
    claim_deliveries(uuid, uuid, int, interval, interval, timestamptz),
    commit_deliveries(uuid, jsonb, interval, int, double precision, uuid),
    commit_sent(uuid, uuid[], uuid[], text[], uuid),
    due_workspaces(int),
    end_upload(uuid, uuid, timestamptz),
    forget_uploads(uuid, text, text, text[], text[]),
    give_back_claims(uuid, uuid, uuid[], interval),
    keep_uploads(uuid, text, text, text[], text[], text[], interval[]),
    learn_bot(uuid, text, text, timestamptz, text, text),
    next_due_at(uuid),
    read_credentials(uuid, text, text[]),
    read_outcomes(uuid, uuid[], uuid[]),
    record_progress(uuid, uuid, uuid, int, text[]),
    renew_leases(uuid, uuid[], uuid[], interval),
    schema_version(),
    set_aside(uuid, text, int, interval, text),
    take_slot(uuid, uuid, uuid, interval, timestamptz, boolean, timestamptz),
    take_uploads(uuid, uuid, uuid, text, text, text[], text[])
    TO autopost_dispatcher;
