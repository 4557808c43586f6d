-- alert_conditions(thresholds) -> every condition that holds right now, by workspace
--
-- thresholds   {"dead", "failed_permanent", "paused_channels", "paused_share",
--               "disabled_channels", "held_deliveries", "cooled_groups", "oldest_due", "pull_sources",
--               "staged_posts", "bot_outbox", "bot_errors", "orphan_events", "relay_lag", "event_partitions",
--               "refused_claims", "set_aside", "provider_waits", "open_circuits",
--               "bot_actions_expired", "bot_webhook", "bot_inbox", "bot_fallback", "bot_adapter",
--               "publications_failed", "publications_paused", "publications_late"}: numbers,
--              durations in seconds; null or missing switches a condition off. And "staged_deadline", in seconds too:
--              how long the media of a post may take over all its attempts
-- found        how many things the condition concerns; the function of each condition says what is counted
-- since        when it began, where that is known
-- causes       [{"name", "code", "count", "id"}], five at most
-- workspace_id zero for the installation itself
CREATE OR REPLACE FUNCTION alert_conditions(p_thresholds jsonb)
RETURNS TABLE (
    condition text,
    workspace_id uuid,
    found bigint,
    threshold numeric,
    since timestamptz,
    causes jsonb
)
LANGUAGE sql
STABLE
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    WITH t AS MATERIALIZED (
        SELECT *
        FROM jsonb_to_record(p_thresholds) AS r (
            dead bigint, failed_permanent bigint, paused_channels bigint, paused_share numeric,
            disabled_channels bigint, held_deliveries bigint, cooled_groups bigint, oldest_due numeric,
            pull_sources bigint, staged_posts numeric, bot_outbox numeric, bot_errors bigint, orphan_events bigint,
            relay_lag numeric, event_partitions numeric, refused_claims numeric, staged_deadline numeric,
            set_aside bigint, provider_waits numeric, open_circuits bigint,
            bot_actions_expired bigint, bot_webhook numeric, bot_inbox numeric, bot_fallback numeric,
            bot_adapter bigint, publications_failed bigint, publications_paused bigint, publications_late numeric)
    )
    SELECT 'dead', c.workspace_id, c.found, t.dead, c.since, c.causes
    FROM t, condition_dead(t.dead) AS c
    UNION ALL
    SELECT 'failed_permanent', c.workspace_id, c.found, t.failed_permanent, c.since, c.causes
    FROM t, condition_failed_permanent(t.failed_permanent) AS c
    UNION ALL
    SELECT 'paused_channels', c.workspace_id, c.found, coalesce(t.paused_channels, 0), c.since, c.causes
    FROM t, condition_paused_channels(t.paused_channels, t.paused_share) AS c
    UNION ALL
    SELECT 'disabled_channels', c.workspace_id, c.found, t.disabled_channels, c.since, c.causes
    FROM t, condition_disabled_channels(t.disabled_channels) AS c
    UNION ALL
    SELECT 'held_deliveries', c.workspace_id, c.found, t.held_deliveries, c.since, c.causes
    FROM t, condition_held_deliveries(t.held_deliveries) AS c
    UNION ALL
    SELECT 'cooled_groups', c.workspace_id, c.found, t.cooled_groups, c.since, c.causes
    FROM t, condition_cooled_groups(t.cooled_groups) AS c
    UNION ALL
    SELECT 'oldest_due', c.workspace_id, c.found, t.oldest_due, c.since, c.causes
    FROM t, condition_oldest_due(make_interval(secs => t.oldest_due::double precision)) AS c
    UNION ALL
    SELECT 'pull_sources', c.workspace_id, c.found, t.pull_sources, c.since, c.causes
    FROM t, condition_pull_sources(t.pull_sources) AS c
    UNION ALL
    SELECT 'staged_posts', c.workspace_id, c.found, t.staged_posts, c.since, c.causes
    FROM t, condition_staged_posts(make_interval(secs => t.staged_posts::double precision),
                                   make_interval(secs => t.staged_deadline::double precision)) AS c
    UNION ALL
    SELECT 'bot_outbox', c.workspace_id, c.found, t.bot_outbox, c.since, c.causes
    FROM t, condition_bot_outbox(make_interval(secs => t.bot_outbox::double precision)) AS c
    UNION ALL
    SELECT 'bot_errors', c.workspace_id, c.found, t.bot_errors, c.since, c.causes
    FROM t, condition_bot_errors(t.bot_errors) AS c
    UNION ALL
    SELECT 'bot_actions_expired', c.workspace_id, c.found, t.bot_actions_expired, c.since, c.causes
    FROM t, condition_bot_actions_expired(t.bot_actions_expired) AS c
    UNION ALL
    SELECT 'bot_webhook', c.workspace_id, c.found, t.bot_webhook, c.since, c.causes
    FROM t, condition_bot_webhook(make_interval(secs => t.bot_webhook::double precision)) AS c
    UNION ALL
    SELECT 'bot_inbox', c.workspace_id, c.found, t.bot_inbox, c.since, c.causes
    FROM t, condition_bot_inbox(make_interval(secs => t.bot_inbox::double precision)) AS c
    UNION ALL
    SELECT 'bot_fallback', c.workspace_id, c.found, t.bot_fallback, c.since, c.causes
    FROM t, condition_bot_fallback(t.bot_fallback) AS c
    UNION ALL
    SELECT 'bot_adapter', c.workspace_id, c.found, t.bot_adapter, c.since, c.causes
    FROM t, condition_bot_adapter(t.bot_adapter) AS c
    UNION ALL
    SELECT 'publications_failed', c.workspace_id, c.found, t.publications_failed, c.since, c.causes
    FROM t, condition_publications_failed(t.publications_failed) AS c
    UNION ALL
    SELECT 'publications_paused', c.workspace_id, c.found, t.publications_paused, c.since, c.causes
    FROM t, condition_publications_paused(t.publications_paused) AS c
    UNION ALL
    SELECT 'publications_late', c.workspace_id, c.found, t.publications_late, c.since, c.causes
    FROM t, condition_publications_late(make_interval(secs => t.publications_late::double precision)) AS c
    UNION ALL
    SELECT 'orphan_events', c.workspace_id, c.found, t.orphan_events, c.since, c.causes
    FROM t, condition_orphan_events(t.orphan_events) AS c
    UNION ALL
    SELECT 'relay_lag', c.workspace_id, c.found, t.relay_lag, c.since, c.causes
    FROM t, condition_relay_lag(make_interval(secs => t.relay_lag::double precision)) AS c
    UNION ALL
    SELECT 'event_partitions', c.workspace_id, c.found, t.event_partitions, c.since, c.causes
    FROM t, condition_event_partitions(make_interval(secs => t.event_partitions::double precision)) AS c
    UNION ALL
    SELECT 'refused_claims', c.workspace_id, c.found, t.refused_claims, c.since, c.causes
    FROM t, condition_refused_claims(make_interval(secs => t.refused_claims::double precision)) AS c
    UNION ALL
    SELECT 'set_aside', c.workspace_id, c.found, t.set_aside, c.since, c.causes
    FROM t, condition_set_aside(t.set_aside) AS c
    UNION ALL
    SELECT 'provider_waits', c.workspace_id, c.found, t.provider_waits, c.since, c.causes
    FROM t, condition_provider_waits(make_interval(secs => t.provider_waits::double precision)) AS c
    UNION ALL
    SELECT 'open_circuits', c.workspace_id, c.found, t.open_circuits, c.since, c.causes
    FROM t, condition_open_circuits(t.open_circuits) AS c
$$;
