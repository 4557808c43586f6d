"""Who may do what: services execute their functions and touch nothing else."""

from itertools import product

import asyncpg
import pytest

ROLES = {
    "autopost_ingest": {
        "approve_publication",
        "begin_publication",
        "cancel_publication",
        "commands_published",
        "draft_publication",
        "due_publications",
        "edit_publication",
        "list_publications",
        "orphaned_publications",
        "publication_access",
        "read_publication",
        "resolve_publication",
        "retry_publication",
        "schedule_publication",
        "unpublished_commands",
        "unschedule_publication",
        "admit_posts",
        "claim_pull_sources",
        "fail_push",
        "fail_staged_post",
        "cancel_post",
        "find_channels",
        "find_post",
        "list_posts",
        "read_post",
        "replace_post",
        "reschedule_post",
        "finish_media_fetch",
        "finish_pull",
        "finish_staged_post",
        "flush_refusals",
        "ingest_pull_chunk",
        "lease_staged_posts",
        "note_media_put",
        "preview_post",
        "read_credentials",
        "read_media_origins",
        "read_signing_secrets",
        "refuse_ingress",
        "release_staged_post",
        "remember_media_origin",
        "renew_staged_post",
        "resolve_endpoint",
        "routing_facts",
        "check_writes",
        "schema_version",
        "store_bot_update",
        "take_media_fetch",
        "unseen_pull_items",
    },
    "autopost_dispatcher": {
        "adopt_policy",
        "claim_deliveries",
        "claim_due",
        "claim_trial",
        "commit_deliveries",
        "commit_sent",
        "commit_sent_across",
        "due_workspaces",
        "forget_uploads",
        "give_back_claims",
        "keep_uploads",
        "learn_bot",
        "next_due_at",
        "publication_error_type",
        "read_credentials",
        "read_outcomes",
        "record_probe",
        "record_progress_across",
        "renew_leases",
        "check_writes",
        "schema_version",
        "end_upload",
        "set_aside",
        "stall_groups",
        "take_probes",
        "take_slots",
        "take_uploads",
    },
    "autopost_monitor": {
        "commands_published",
        "drop_missed_publications",
        "unpublished_commands",
        "abandon_notices",
        "active_workspaces",
        "adopt_stream",
        "advance_relay",
        "give_up_owner_notices",
        "next_owner_notices",
        "record_owner_notice",
        "finish_media_deletion",
        "checkpoint_deliveries",
        "circuit_counts",
        "count_alerts",
        "count_publications",
        "count_unpublished_commands",
        "count_bot_actions",
        "mark_media_for_deletion",
        "mark_orphan_objects",
        "drop_event_partition",
        "end_leader_lease",
        "ensure_event_partitions",
        "expire_bot_actions",
        "expired_event_partitions",
        "evaluate_alerts",
        "next_audit_events",
        "next_notice",
        "open_relay",
        "orphan_events",
        "partitions_ahead",
        "queue_by_workspace",
        "queue_depth",
        "reconcile_events",
        "recount",
        "recover_claimed_leases",
        "recover_sending_leases",
        "recover_staged_posts",
        "relay_lag",
        "resolve_status_token",
        "retain_alerts",
        "retain_bot_actions",
        "retain_bot_chats",
        "retain_bot_inbox",
        "retain_bot_logs",
        "retain_bot_outbox",
        "retain_bot_rulesets",
        "retain_bot_state",
        "retain_commands",
        "retain_deliveries",
        "retain_ingest_runs",
        "retain_media_blobs",
        "retain_media_fetches",
        "retain_messages",
        "retain_pull_receipts",
        "retain_receipts",
        "retain_staged_posts",
        "check_writes",
        "schema_version",
        "record_notice_result",
        "snapshot",
        "status_report",
        "set_aside",
        "working_conditions",
        "stuck_bot_replies",
        "stuck_staged_posts",
        "take_leader_lease",
        "send_snapshot",
    },
    "autopost_operator": {
        "bot_turns",
        "enable_bot_rules",
        "end_handoff",
        "import_bot_rules",
        "list_bot_actions",
        "list_bot_chats",
        "list_bot_rules",
        "live_bot_states",
        "read_ruleset",
        "turn_bot_reply",
        "unmatched_texts",
        "why_bot_update",
        "approve_publication",
        "cancel_deliveries",
        "cancel_publication",
        "draft_publication",
        "edit_publication",
        "list_publications",
        "read_publication",
        "resolve_publication",
        "retry_publication",
        "schedule_publication",
        "unschedule_publication",
        "audit_cursor",
        "bind_credential",
        "disable_channels",
        "enable_channels",
        "enqueue_messages_and_deliveries",
        "enqueue_messages_and_deliveries_batch",
        "fail_permanent",
        "issue_status_token",
        "check_stream",
        "list_channels",
        "list_dead_letters",
        "list_credentials",
        "list_status_tokens",
        "list_workspaces",
        "mark_sent",
        "match_dead_letters",
        "note_webhooks",
        "pause_channels",
        "read_bot_access",
        "read_channel_settings",
        "recent_errors",
        "recount",
        "release_stale",
        "requeue",
        "requeue_matching",
        "resolve_ambiguous",
        "resume_channels",
        "revoke_status_token",
        "rotate_auth",
        "schedule_retry",
        "set_bot_webhook",
        "skip",
        "snapshot",
        "turn_workspace",
        "verify_bot_ruleset",
        "verify_bot_turns",
        "verify_channels",
        "verify_deliveries",
        "verify_events",
        "verify_publications",
        "verify_queue",
        "verify_size",
        "why",
        "why_channel",
        "why_delivery",
    },
    "autopost_bot": {
        "bot_counts",
        "change_actions",
        "chat_changes",
        "chat_heads",
        "chat_messages",
        "chat_ticket_key",
        "check_writes",
        "commit_replies",
        "commit_replies_across",
        "commit_turns",
        "commit_turns_across",
        "due_bot_workspaces",
        "keep_ruleset",
        "list_actions",
        "note_webhooks",
        "read_credentials",
        "read_ruleset",
        "read_turns",
        "record_probe",
        "record_reply_part",
        "release_chats",
        "renew_chats",
        "resolve_endpoint",
        "schema_version",
        "set_aside",
        "stall_groups",
        "take_chats",
        "take_chats_across",
        "take_press_slot",
        "take_probes",
        "take_reply_slots",
        "take_webhook_checks",
    },
    "autopost_reader": {"reader_workspaces", "why", "why_channel", "why_delivery"},
    "autopost_payloads": {"note_payload_access"},
}
READS = {
    ("autopost_operator", "quarantine", "SELECT"),
    ("autopost_reader", "reader_channels", "SELECT"),
    ("autopost_reader", "reader_deliveries", "SELECT"),
    ("autopost_reader", "reader_events", "SELECT"),
    ("autopost_reader", "reader_messages", "SELECT"),
    ("autopost_reader", "reader_quarantine", "SELECT"),
    ("autopost_reader", "reader_runs", "SELECT"),
}
NO_TABLE = (asyncpg.ObjectNotInPrerequisiteStateError, asyncpg.WrongObjectTypeError)
"""What whoever writes to a view of several tables is told, before it is asked who it is."""
DENIED = asyncpg.InsufficientPrivilegeError
REFUSED = {"r": DENIED, "p": DENIED, "v": (DENIED, *NO_TABLE)}
VERBS = {
    "SELECT": "SELECT 1 FROM {}",
    "INSERT": "INSERT INTO {} DEFAULT VALUES",
    "UPDATE": "UPDATE {} SET {} = NULL",
    "DELETE": "DELETE FROM {}",
    "TRUNCATE": "TRUNCATE {}",
}


async def test_no_role_has_a_right_on_any_table_or_sequence_nor_on_a_view_that_is_not_its_own(seeded_database):
    found = await seeded_database.pool.fetch(
        """
        SELECT r.role, c.relname, p.privilege
        FROM pg_class c
        CROSS JOIN unnest($1::text[]) AS r (role)
        CROSS JOIN unnest('{SELECT,INSERT,UPDATE,DELETE,TRUNCATE,REFERENCES,TRIGGER}'::text[]) AS p (privilege)
        WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm')
          AND (has_table_privilege(r.role, c.oid, p.privilege)
               OR (p.privilege IN ('SELECT', 'INSERT', 'UPDATE', 'REFERENCES')
                   AND has_any_column_privilege(r.role, c.oid, p.privilege)))
        UNION ALL
        SELECT r.role, c.relname, p.privilege
        FROM pg_class c
        CROSS JOIN unnest($1::text[]) AS r (role)
        CROSS JOIN unnest('{USAGE,SELECT,UPDATE}'::text[]) AS p (privilege)
        WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'S'
          AND has_sequence_privilege(r.role, c.oid, p.privilege)
        """,
        list(ROLES),
    )

    assert {tuple(row) for row in found} == READS


async def test_every_role_is_refused_every_verb_on_every_relation_but_what_it_reads(seeded_database):
    """What the catalog says, seen to happen."""
    connection = await seeded_database.connect()
    relations = await connection.fetch(
        "SELECT oid::regclass::text AS name, relkind::text AS kind, "
        "(SELECT attname FROM pg_attribute WHERE attrelid = oid AND attnum = 1) AS first_column FROM pg_class "
        "WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p', 'v')"
    )

    for role in ROLES:
        await connection.execute(f"SET ROLE {role}")
        for relation, (verb, statement) in product(relations, VERBS.items()):
            if (role, relation["name"], verb) not in READS:
                with pytest.raises(REFUSED[relation["kind"]]):
                    await connection.execute(statement.format(relation["name"], relation["first_column"]))


async def test_a_role_executes_exactly_its_functions(database):
    found = await database.pool.fetch(
        "SELECT r.role, array_agg(proname::text) FILTER (WHERE has_function_privilege(r.role, oid, 'EXECUTE')) "
        "AS names FROM pg_proc, unnest($1::text[]) AS r (role) "
        "WHERE pronamespace = 'public'::regnamespace GROUP BY r.role",
        list(ROLES),
    )

    assert {row["role"]: set(row["names"] or ()) for row in found} == ROLES


async def test_nobody_else_executes_anything(database):
    await database.pool.execute("CREATE FUNCTION added_later() RETURNS int LANGUAGE sql AS 'SELECT 1'")

    found = await database.pool.fetch(
        "SELECT proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace "
        "AND EXISTS (SELECT 1 FROM aclexplode(coalesce(proacl, acldefault('f', proowner))) AS a WHERE a.grantee = 0)"
    )

    assert [row["proname"] for row in found] == []


async def test_no_role_creates_objects(database):
    found = await database.pool.fetch(
        "SELECT r FROM unnest($1::text[]) AS r WHERE has_schema_privilege(r, 'public', 'CREATE')", list(ROLES)
    )

    assert list(found) == []


async def test_every_definer_function_has_its_search_path_pinned(database):
    """Else a caller's own schema could answer for ours."""
    loose = await database.pool.fetch(
        "SELECT proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace AND prosecdef "
        "AND NOT coalesce(proconfig @> '{\"search_path=public, pg_temp\"}', false)"
    )

    assert [row["proname"] for row in loose] == []


async def test_every_granted_function_runs_with_the_rights_of_its_owner(database):
    loose = await database.pool.fetch(
        "SELECT proname FROM pg_proc, unnest($1::text[]) AS r (role) WHERE pronamespace = 'public'::regnamespace "
        "AND NOT prosecdef AND has_function_privilege(r.role, oid, 'EXECUTE')",
        list(ROLES),
    )

    assert [row["proname"] for row in loose] == []


async def test_a_service_does_its_work_in_its_role(database):
    connection = await database.connect()
    await connection.execute("SET ROLE autopost_monitor")

    assert await connection.fetchval("SELECT count(*) FROM queue_depth()") == 4
    assert await connection.fetchval("SELECT ensure_event_partitions('50 days')") > 0
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await connection.fetch("SELECT * FROM due_workspaces()")
