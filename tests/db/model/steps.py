"""What a history needs in its database: one call per step, which tells what the step changed, and one to look on.

``model_step`` does one thing and answers with every row and event that its own transaction has written, so a step
costs one round trip and is judged by what the database did, not by what it says it did. ``model_watch`` is for a
connection that stands by: what others see, and the complaints of ``db.consistency``.
"""

import asyncpg
from db.support.consistency import COMPLAINTS

INSTALL = (
    """
CREATE FUNCTION model_us(timestamptz) RETURNS bigint LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN isfinite($1) THEN (date_part('epoch', $1) * 1000000)::bigint
                WHEN $1 = 'infinity' THEN 4611686018427387904 END
$$;

CREATE FUNCTION model_setup(p_groups jsonb, p_channels jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    _ws uuid;
BEGIN
    INSERT INTO workspaces (name) VALUES ('history') RETURNING workspace_id INTO _ws;
    INSERT INTO platform_limits (workspace_id, platform, rate_group, rate_rps)
    SELECT _ws, 'telegram', g ->> 'name', (g ->> 'rate')::numeric FROM jsonb_array_elements(p_groups) AS g;
    INSERT INTO channels (workspace_id, platform, target_id, auth_ref, rate_group, rate_rps, max_parallel,
                          on_ambiguous, dedup_ttl_hours, catch_up)
    SELECT _ws, 'telegram', n::text, 'bot', c ->> 'group', (c ->> 'rate')::numeric, (c ->> 'places')::int,
           c ->> 'on_ambiguous', (c ->> 'ttl')::int, c -> 'catch_up'
    FROM jsonb_array_elements(p_channels) WITH ORDINALITY AS c (c, n);
    RETURN jsonb_build_object(
        'workspace', _ws,
        'profile', (SELECT min(profile_hash) FROM channels WHERE workspace_id = _ws),
        'channels', (SELECT jsonb_agg(channel_id ORDER BY target_id) FROM channels WHERE workspace_id = _ws));
END $$;

-- Time passes: everything in the workspace becomes older. For a session whose session_replication_role is replica:
-- no trigger sees time pass.
CREATE FUNCTION model_age(p_ws uuid, p_by interval) RETURNS void LANGUAGE plpgsql
SET enable_seqscan = off AS $$
BEGIN
    UPDATE deliveries
    SET not_before = not_before - p_by, scheduled_for = scheduled_for - p_by, next_retry_at = next_retry_at - p_by,
        sent_at = sent_at - p_by, claimed_at = claimed_at - p_by, sending_started_at = sending_started_at - p_by,
        sending_lease_until = sending_lease_until - p_by, slot_at = slot_at - p_by, created_at = created_at - p_by,
        updated_at = updated_at - p_by
    WHERE workspace_id = p_ws;
    UPDATE delivery_queue SET sort_at = sort_at - p_by, due_at = due_at - p_by, lease_until = lease_until - p_by
    WHERE workspace_id = p_ws;
    UPDATE channels SET next_allowed_at = next_allowed_at - p_by, paused_until = paused_until - p_by
    WHERE workspace_id = p_ws;
    UPDATE platform_limits SET next_allowed_at = next_allowed_at - p_by WHERE workspace_id = p_ws;
    UPDATE channel_due
    SET next_due_at = next_due_at - p_by, low_water = low_water - p_by, swept_at = swept_at - p_by
    WHERE workspace_id = p_ws;
    UPDATE messages SET last_seen_at = last_seen_at - p_by WHERE workspace_id = p_ws;
END $$;
""",
    """
CREATE FUNCTION model_act(p_ws uuid, p_kind text, p jsonb) RETURNS jsonb LANGUAGE plpgsql
SET enable_seqscan = off AS $$
DECLARE
    _ids uuid[] := ARRAY(SELECT jsonb_array_elements_text(p -> 'ids')::uuid);
    _tokens uuid[];
    _provider_ids text[];
    _left int[];
BEGIN
    CASE p_kind
    WHEN 'enqueue' THEN
        RETURN enqueue_messages_and_deliveries(p_ws, NULL, 'push', CASE
            WHEN p ? 'later' THEN p -> 'post' || jsonb_build_object(
                'scheduled_for', clock_timestamp() + (p ->> 'later')::interval)
            ELSE p -> 'post' END);
    WHEN 'claim' THEN
        RETURN (SELECT jsonb_agg(jsonb_build_array(c.delivery_id, c.claim_token, c.attempt, model_us(c.slot_at)))
                FROM claim_deliveries(p_ws, gen_random_uuid(), (p ->> 'limit')::int) AS c);
    WHEN 'commit' THEN
        -- The dispatcher tells what is left in a transaction of its own; here that is another step.
        IF NOT jsonb_path_exists(p, '$.outcomes[*] ? (@.result != "sent" || exists(@.parts) || exists(@.meta))') THEN
            SELECT array_agg(o.delivery_id), array_agg(o.claim_token), array_agg(o.provider_message_id)
            INTO _ids, _tokens, _provider_ids
            FROM jsonb_to_recordset(p -> 'outcomes')
                AS o (delivery_id uuid, claim_token uuid, provider_message_id text);
            _left := ARRAY(SELECT commit_sent(p_ws, _ids, _tokens, _provider_ids));
            IF cardinality(_left) < cardinality(_ids) THEN
                RETURN (SELECT jsonb_agg(jsonb_build_array(
                                   id, CASE WHEN nth = ANY (_left) THEN 'left' ELSE 'committed' END, 'sent', NULL)
                                   ORDER BY nth)
                        FROM unnest(_ids) WITH ORDINALITY AS o (id, nth));
            END IF;
        END IF;
        RETURN (SELECT jsonb_agg(jsonb_build_array(c.delivery_id, c.verdict, c.status, model_us(c.next_retry_at)))
                FROM commit_deliveries(p_ws, p -> 'outcomes', '1 hour', 3, 0.5) AS c);
    WHEN 'recover' THEN
        RETURN to_jsonb(recover_sending_leases(p_ws, clock_timestamp() + (p ->> 'ahead')::interval, 1000, 0.5));
    WHEN 'renew' THEN
        RETURN (SELECT jsonb_agg(r) FROM renew_leases(
            p_ws, _ids, ARRAY(SELECT jsonb_array_elements_text(p -> 'tokens')::uuid), '400 seconds') AS r);
    WHEN 'progress' THEN
        -- A slot that is only named is asked for again at its time, as if that had come.
        RETURN jsonb_build_array(
            record_progress(p_ws, _ids[1], (p ->> 'token')::uuid, (p ->> 'part')::int, ARRAY['p']),
            (SELECT jsonb_build_array(model_us(coalesce(later.slot_at, s.slot_at)), coalesce(later.taken, s.taken),
                                      model_us(CASE WHEN later.taken THEN s.slot_at ELSE clock_timestamp() END))
             FROM take_slot(p_ws, _ids[1], (p ->> 'token')::uuid) AS s
             LEFT JOIN LATERAL take_slot(
                 p_ws, CASE WHEN NOT s.taken AND s.slot_at <= clock_timestamp() + interval '5 seconds' THEN _ids[1] END,
                 (p ->> 'token')::uuid, p_now => s.slot_at) AS later ON true));
    WHEN 'pause' THEN
        RETURN (SELECT jsonb_agg(v.verdict) FROM pause_channels(
            p_ws, (p ->> 'channel')::uuid, NULL, 'me', 'test', (p ->> 'for')::interval) AS v);
    WHEN 'resume' THEN
        RETURN (SELECT jsonb_agg(v.verdict) FROM resume_channels(
            p_ws, (p ->> 'channel')::uuid, NULL, 'me', 'test') AS v);
    WHEN 'disable' THEN
        RETURN (SELECT jsonb_agg(v.verdict) FROM disable_channels(
            p_ws, (p ->> 'channel')::uuid, NULL, 'me', 'test') AS v);
    WHEN 'enable' THEN
        RETURN (SELECT jsonb_agg(v.verdict) FROM enable_channels(
            p_ws, (p ->> 'channel')::uuid, NULL, 'me', 'test') AS v);
    WHEN 'requeue' THEN
        RETURN (SELECT jsonb_object_agg(v.delivery_id, v.verdict) FROM requeue(p_ws, _ids, 'me', 'test', 2) AS v);
    WHEN 'resolve' THEN
        RETURN resolve_ambiguous(p_ws, _ids[1], p ->> 'decision', 'me', 'test', p ->> 'found');
    WHEN 'release' THEN
        RETURN (SELECT jsonb_agg(v.delivery_id) FROM release_stale(p_ws, 'me', 'test', (p ->> 'force')::boolean) AS v);
    WHEN 'raw_requeue' THEN
        WITH moved AS (
            UPDATE deliveries d
            SET status = 'retry', next_retry_at = now(), claimed_at = NULL, claim_token = NULL,
                sending_started_at = NULL, updated_at = now()
            WHERE d.workspace_id = p_ws AND d.status IN ('dead', 'failed_permanent') AND d.delivery_id = ANY (_ids)
            RETURNING d.*
        )
        INSERT INTO events (workspace_id, delivery_id, message_id, channel_id, action, attempt, ts)
        SELECT workspace_id, delivery_id, message_id, channel_id, 'manual_requeue', attempt, now() FROM moved;
    WHEN 'raw_release' THEN
        WITH moved AS (
            UPDATE deliveries d
            SET status = 'retry', next_retry_at = now() + interval '15 seconds', claimed_at = NULL,
                claim_token = NULL, sending_started_at = NULL, updated_at = now()
            WHERE d.workspace_id = p_ws AND d.status IN ('claimed', 'sending')
              AND coalesce(d.sending_started_at, d.claimed_at) < now() - interval '10 minutes'
            RETURNING d.*
        )
        INSERT INTO events (workspace_id, delivery_id, message_id, channel_id, action, attempt, ts)
        SELECT workspace_id, delivery_id, message_id, channel_id, 'manual_requeue', attempt, now() FROM moved;
    WHEN 'age' THEN
        PERFORM model_age(p_ws, (p ->> 'by')::interval);
    END CASE;
    RETURN NULL;
END $$;
""",
    """
CREATE FUNCTION model_step(p_ws uuid, p_kind text, p jsonb, p_seq bigint) RETURNS json LANGUAGE plpgsql
SET enable_seqscan = off AS $$
DECLARE
    _began timestamptz := clock_timestamp();
    _answer jsonb := model_act(p_ws, p_kind, p);
    _xid xid8 := pg_current_xact_id();
    _told json;
BEGIN
    SELECT json_build_array(
        _answer, model_us(_began), model_us(clock_timestamp()),
        (SELECT json_agg(json_build_array(
             d.delivery_id, d.message_id, d.channel_id, d.status, d.attempt, d.max_attempts, d.claim_token,
             d.hold_reason, d.provider_message_id, model_us(d.sent_at), model_us(d.next_retry_at),
             model_us(d.sending_lease_until), model_us(d.slot_at), model_us(d.not_before), model_us(d.scheduled_for),
             model_us(d.created_at), model_us(d.updated_at),
             coalesce(jsonb_array_length(d.render_meta #> '{series_progress,sent_items}'), 0)))
         FROM deliveries d
         WHERE d.workspace_id = p_ws AND d.xmin = _xid::xid),
        (SELECT json_agg(json_build_array(
             e.seq, e.delivery_id, e.action, e.attempt, e.meta ->> 'provider_message_id',
             model_us((e.meta ->> 'next_retry_at')::timestamptz), model_us(e.ts)) ORDER BY e.seq)
         FROM events e
         WHERE e.xid = _xid AND e.seq > p_seq AND e.delivery_id IS NOT NULL
           AND e.ts >= now() - interval '1 day' AND e.ts < now() + interval '1 day'),
        (SELECT json_agg(json_build_array(
             c.channel_id, c.enabled, model_us(c.paused_until), c.error_streak, model_us(c.next_allowed_at)))
         FROM channels c WHERE c.workspace_id = p_ws AND c.xmin = _xid::xid),
        (SELECT json_agg(json_build_array(g.rate_group, model_us(g.next_allowed_at)))
         FROM platform_limits g WHERE g.workspace_id = p_ws AND g.xmin = _xid::xid))
    INTO _told;
    RETURN _told;
END $$;
""",
    f"""
CREATE FUNCTION model_complaints(uuid, timestamptz) RETURNS SETOF text LANGUAGE plpgsql
SET enable_seqscan = off AS $$ BEGIN RETURN QUERY {COMPLAINTS}; END $$;

CREATE FUNCTION model_watch(p_ws uuid) RETURNS json LANGUAGE plpgsql
SET enable_seqscan = off AS $$
BEGIN
    RETURN json_build_array(
        (SELECT string_agg(concat_ws(' ', d.delivery_id, d.status, d.attempt, d.claim_token), E'\\n'
                           ORDER BY d.delivery_id)
         FROM deliveries d WHERE d.workspace_id = p_ws),
        (SELECT json_agg(c) FROM model_complaints(p_ws, NULL) AS c));
END $$;
""",
)

STEP = "SELECT model_step($1, $2, $3, $4)"
WATCH = "SELECT model_watch($1)"
SETUP = "SELECT model_setup($1, $2)"


async def install(connection: "asyncpg.Connection[asyncpg.Record]") -> None:
    for text in INSTALL:
        await connection.execute(text)
