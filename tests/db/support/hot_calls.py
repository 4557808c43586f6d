"""A workspace in the middle of its work, and the calls that services make there all the time, measured in buffers."""

import json
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

from db.support import hot_conversations, hot_publications
from db.support.builders import Tenant, permanent, sent, transient
from db.support.hot_conversations import Conversations
from db.support.hot_publications import Publications
from db.support.relay_cursor import Cursor
from db.support.senders import make_sender

CHANNELS = 20
IN_FLIGHT = 200
BATCH = 100

BACKLOG = """
WITH message AS (
    INSERT INTO messages (workspace_id, content_hash, payload, created_at, last_seen_at)
    SELECT $1, gen_random_uuid()::text, '{}', now() - interval '1 day' + n * interval '1 ms', now() - interval '1 day'
    FROM generate_series(1, $3 / cardinality($2::uuid[])) AS n
    RETURNING message_id, content_hash
), rendering AS (
    INSERT INTO renderings (workspace_id, message_id, plan_hash, rendered_text, plan)
    SELECT $1, message_id, 'plan', '', '{}' FROM message
    RETURNING rendering_id, message_id
), receipt AS (
    INSERT INTO ingress_receipts (workspace_id, endpoint_id, endpoint_kind, source_ref, payload_hash, run_id,
                                  expires_at)
    SELECT $1, $4, 'webhook_push', content_hash, content_hash, message_id, now() - interval '1 hour' FROM message
), run AS (
    INSERT INTO ingest_runs (workspace_id, run_id, kind, started_at, finished_at)
    SELECT $1, message_id, 'push', now() - interval '1 day', now() - interval '1 day' FROM message
), staged AS (
    INSERT INTO staged_posts (workspace_id, endpoint_id, run_id, request, status, message_id, finished_at)
    SELECT $1, $4, message_id, '{}', 'enqueued', message_id, now() - interval '1 day' FROM message
), waiting AS (
    INSERT INTO staged_posts (workspace_id, endpoint_id, run_id, request, next_attempt_at)
    SELECT $1, $4, gen_random_uuid(), '{}', now() + interval '1 day' FROM message
), origin AS (
    INSERT INTO media_origin (workspace_id, blob_ref, origin_url, sha256, size_bytes)
    SELECT $1, content_hash, 's3://bucket/' || content_hash, content_hash, 1 FROM message
), uploaded AS (
    INSERT INTO media_blobs (workspace_id, blob_ref, provider, bot_id, file_id, meta)
    SELECT $1, content_hash, 'telegram', 'bot', content_hash, '{"kind": "image"}' FROM message
), pulled AS (
    INSERT INTO pull_receipts (workspace_id, source_id, source_ref, message_id)
    SELECT $1, 'feed', content_hash, message_id FROM message
), fetched AS (
    INSERT INTO media_fetches (workspace_id, url_hash, blob_ref, finished_at)
    SELECT $1, content_hash, content_hash, now() FROM message
), answered AS (
    INSERT INTO bot_inbox (workspace_id, provider, chat_id, provider_message_id, processed_at)
    SELECT $1, 'max', content_hash, content_hash, now() FROM message
), unanswered AS (
    INSERT INTO bot_inbox (workspace_id, provider, chat_id, provider_message_id)
    SELECT $1, 'max', content_hash, content_hash || 'b' FROM message
), chat AS (
    INSERT INTO bot_chats (workspace_id, chat_id, changed_at)
    SELECT $1, content_hash, now() - interval '1 day' FROM message
), heard AS (
    INSERT INTO bot_inbox (workspace_id, provider, chat_id, provider_message_id, processed_at, seq)
    SELECT $1, 'max', 'busy', content_hash, now(), row_number() OVER () FROM message
), acted AS (
    INSERT INTO bot_actions (workspace_id, chat_id, action_id, action_type, status, updated_at, seq)
    SELECT $1, 'busy', content_hash, 'summarize', 'done', now() - interval '1 day', row_number() OVER () FROM message
), delivery AS (
    INSERT INTO deliveries (workspace_id, message_id, channel_id, rendering_id, hash_version, content_hash,
                            not_before, created_at, event_count)
    SELECT $1, m.message_id, c.channel_id, r.rendering_id, 1, m.content_hash, now(), now(), 1
    FROM message m
    JOIN rendering r USING (message_id)
    CROSS JOIN unnest($2::uuid[]) AS c (channel_id)
    RETURNING delivery_id, channel_id, message_id, created_at
), queued AS (
    INSERT INTO delivery_queue (workspace_id, delivery_id, channel_id, asleep, sort_at, due_at)
    SELECT $1, delivery_id, channel_id, false, created_at, created_at FROM delivery
)
INSERT INTO events (workspace_id, delivery_id, message_id, channel_id, action)
SELECT $1, delivery_id, message_id, channel_id, 'enqueue' FROM delivery
"""
"""$3 deliveries and all that came with them, past the triggers: a burst of posts with media, each to all channels."""
HEAD = 1_000_000_000
"""The number of the last change in the busy chat."""
CHAT = """
WITH chat AS (
    INSERT INTO bot_chats (workspace_id, chat_id, seq) VALUES ($1, 'busy', $2)
)
INSERT INTO bot_actions (workspace_id, chat_id, action_id, action_type, seq)
SELECT $1, 'busy', 'action ' || n, 'summarize', $2 - 3 + n FROM generate_series(1, 3) AS n
"""
AWAY = """
CREATE FUNCTION make_away(p_circuit circuit_state) RETURNS void LANGUAGE sql AS $$
    UPDATE platform_limits SET circuit = p_circuit, opened_at = now(), probe_at = now()
$$;
CREATE FUNCTION trials_of(p_workspace_id uuid, p_rate_group text) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    PERFORM make_away('half');
    RETURN (SELECT count(*) FROM claim_trial(p_workspace_id, 'telegram', p_rate_group, p_workspace_id));
END $$;
CREATE FUNCTION probes_of() RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    PERFORM make_away('open');
    RETURN (SELECT count(*) FROM take_probes());
END $$;
"""
"""Calls of a time when no platform answers."""
BLOBS = ["sha256:one", "sha256:two", "sha256:three"]
ALL_CONDITIONS = "SELECT jsonb_object_agg(substr(proname, 11), 1) FROM pg_proc WHERE starts_with(proname, 'condition_')"
SEEN = "the text of an earlier post"


def unshowable(post: dict[str, Any]) -> dict[str, Any]:
    """Its renderings have problems instead of plans."""
    wrong = [{"code": "message_too_long", "field": "text", "message": "5"}]
    made = [{"profile_hash": each["profile_hash"], "problems": wrong} for each in post["renderings"]]
    return post | {"content_hash": uuid4().hex, "renderings": made}


@dataclass
class Call:
    query: str
    arguments: tuple[Any, ...]


@dataclass
class World:
    tenant: Tenant
    channels: list[UUID]
    endpoint: UUID
    relay: Cursor
    pull_token: UUID
    pull_endpoint: UUID
    staged: tuple[UUID, UUID, UUID]
    """A post that is being fetched: its workspace, its id and its lease."""
    actions: UUID
    """The endpoint of the action API."""
    conversations: Conversations
    publications: Publications
    claims: list[dict[str, Any]] = field(default_factory=list)

    @classmethod
    async def open(cls, pool: Any) -> "World":
        """Two hundred deliveries under way; as many waiting, and twenty that wait for their time."""
        tenant = await Tenant.create(pool)
        channels = await tenant.channels(CHANNELS)
        sender = await make_sender(tenant)
        token = uuid4()
        await pool.execute(
            "INSERT INTO pull_sources (workspace_id, source_id, kind, every, lease_token, lease_until, run_id) "
            "VALUES ($1, 'feed', 'rss', '5 minutes', $2, now() + interval '1 hour', $3)",
            *(tenant.workspace, token, await _run(tenant)),
        )
        pulls = await pool.fetchval(
            "INSERT INTO workspace_endpoints (workspace_id, kind, source_id) VALUES ($1, 'pull_source', 'feed') "
            "RETURNING endpoint_id",
            tenant.workspace,
        )
        await pool.execute(
            "INSERT INTO staged_posts (workspace_id, endpoint_id, run_id, request) "
            "SELECT $1, $2, gen_random_uuid(), '{}' FROM generate_series(1, 10)",
            *(tenant.workspace, sender.endpoint),
        )
        await pool.execute(AWAY)
        await pool.execute(CHAT, tenant.workspace, HEAD)
        actions = await pool.fetchval(
            "INSERT INTO workspace_endpoints (workspace_id, kind, secret_hash) VALUES ($1, 'bot_api', $2) "
            "RETURNING endpoint_id",
            *(tenant.workspace, uuid4().hex * 2),
        )
        await pool.executemany(
            "INSERT INTO media_origin (workspace_id, blob_ref, origin_url, size_bytes) VALUES ($1, $2, 's3://b/k', 1)",
            [(tenant.workspace, blob) for blob in BLOBS],
        )
        staged = await pool.fetchrow(
            "INSERT INTO staged_posts (workspace_id, endpoint_id, run_id, request, status, lease_token, lease_until) "
            "VALUES ($1, $2, $3, '{}', 'fetching', gen_random_uuid(), now() + interval '1 day') "
            "RETURNING workspace_id, post_id, lease_token",
            *(tenant.workspace, sender.endpoint, await _run(tenant)),
        )
        cursor = await Cursor.opened(pool)
        conversations = await Conversations.open(tenant)
        publications = await Publications.open(tenant, channels[0], sender.endpoint)
        world = cls(
            *(tenant, channels, sender.endpoint, cursor, token, pulls, tuple(staged), actions),
            *(conversations, publications),
        )
        for _ in range(IN_FLIGHT // CHANNELS):
            await tenant.enqueue()
        world.claims = await tenant.claim(IN_FLIGHT)
        await tenant.enqueue(SEEN)
        await pool.execute(
            "UPDATE deliveries SET scheduled_for = now() + interval '30 minutes' WHERE status = 'queued'"
        )
        for _ in range(IN_FLIGHT // CHANNELS):
            await tenant.enqueue()
        return world

    async def burst(self, connection: Any, count: int) -> None:
        """This many deliveries more, all of them due, and relayed."""
        await connection.execute("SET session_replication_role = replica")
        await connection.execute(BACKLOG, self.tenant.workspace, self.channels, count, self.endpoint, timeout=300)
        await connection.execute(hot_conversations.BACKLOG, self.tenant.workspace, count // CHANNELS)
        await connection.execute(hot_publications.BACKLOG, self.tenant.workspace, count // CHANNELS, self.channels[0])
        await connection.execute("RESET session_replication_role")
        await connection.execute(
            "UPDATE relay_state SET lo = pg_current_xact_id(), hi = pg_current_xact_id(), "
            "seq_done = (SELECT last_value FROM events_seq)"
        )
        await connection.execute(
            "INSERT INTO events (workspace_id, action) SELECT $1, 'checkpoint' FROM generate_series(1, $2)",
            *(self.tenant.workspace, BATCH),
        )

    async def calls(self) -> dict[str, Call]:
        workspace, half = self.tenant.workspace, self.claims[:BATCH]
        one, later = self.claims[0], timedelta(hours=1)
        fences = [claim["delivery_id"] for claim in half], [claim["claim_token"] for claim in half]
        refused = [transient(claim, "platform", retry_after_ms=1) for claim in self.claims[BATCH:-CHANNELS]]
        refused += [permanent(claim, "channel") for claim in self.claims[-CHANNELS:]]
        well, ill = (json.dumps(outcomes, default=str) for outcomes in ([sent(claim) for claim in half], refused))
        commit = "SELECT * FROM commit_deliveries($1, $2, '1 hour', 3, 0.5)"
        post = await self.tenant.post()
        seen, tag = json.dumps([await self.tenant.post(SEEN, source_ref=uuid4().hex)]), uuid4().hex
        kinds = ["image"] * len(BLOBS)
        update = {"provider": "max", "chat_id": "7", "kind": "message_created", "answer": True, "body": {}}
        fetch = (*self.staged, uuid4().hex)
        pulled = json.dumps([await self.tenant.post(source_ref=uuid4().hex)])
        return {
            "claim": Call("SELECT * FROM claim_deliveries($1, $2, $3)", (workspace, uuid4(), BATCH)),
            "claim of sleepers": Call(
                "SELECT * FROM claim_deliveries($1, $2, $3, p_now => clock_timestamp() + $4)",
                (workspace, uuid4(), BATCH, later),
            ),
            "claim_due": Call("SELECT * FROM claim_due($1, $2, $3, $3)", ([workspace, uuid4()], uuid4(), BATCH)),
            "claim_due of sleepers": Call(
                "SELECT * FROM claim_due($1, $2, $3, $3, p_now => clock_timestamp() + $4)",
                ([workspace, uuid4()], uuid4(), BATCH, later),
            ),
            "commit_sent": Call("SELECT commit_sent($1, $2, $3, $4)", (workspace, *fences, ["17"] * BATCH)),
            "commit_sent_across": Call(
                "SELECT * FROM commit_sent_across($1, $2, $3, $4)", ([workspace] * BATCH, *fences, ["17"] * BATCH)
            ),
            "commit of sent": Call(commit, (workspace, well)),
            "commit of failed": Call(commit, (workspace, ill)),
            "read_outcomes": Call("SELECT * FROM read_outcomes($1, $2, $3)", (workspace, *fences)),
            "record_progress": Call(
                "SELECT record_progress($1, $2, $3, 0, '{17}')", (workspace, one["delivery_id"], one["claim_token"])
            ),
            "take_slot": Call(
                "SELECT * FROM take_slot($1, $2, $3)", (workspace, one["delivery_id"], one["claim_token"])
            ),
            "record_progress_across": Call(
                "SELECT record_progress_across($1, $2, $3, $4, $5)",
                ([workspace] * BATCH, *fences, [0] * BATCH, json.dumps([["17"]] * BATCH)),
            ),
            "take_slots": Call(
                "SELECT * FROM take_slots($1, $2, $3, $4, $5)",
                ([workspace] * BATCH, *fences, [False] * BATCH, [None] * BATCH),
            ),
            "circuits_in_doubt": Call("SELECT circuits_in_doubt($1)", ([workspace, uuid4()],)),
            "take_probes": Call("SELECT * FROM take_probes()", ()),
            "renew_leases": Call("SELECT renew_leases($1, $2, $3)", (workspace, *fences)),
            "next_due_at": Call("SELECT next_due_at($1)", (workspace,)),
            "due_workspaces": Call("SELECT * FROM due_workspaces()", ()),
            "recover_sending_leases": Call("SELECT recover_sending_leases($1)", (workspace,)),
            "recovery of stale sends": Call(
                "SELECT recover_sending_leases($1, clock_timestamp() + $2)", (workspace, later)
            ),
            "recover_claimed_leases": Call("SELECT recover_claimed_leases($1)", (workspace,)),
            "admit_posts": Call(
                "SELECT admit_posts($1, $2, $3, $4, '{f}')",
                (workspace, self.endpoint, json.dumps([post]), [uuid4().hex]),
            ),
            "admit_posts, content seen before": Call(
                "SELECT admit_posts($1, $2, $3, $4, '{f}')", (workspace, self.endpoint, seen, [tag])
            ),
            "admit_posts, a channel cannot show it": Call(
                "SELECT admit_posts($1, $2, $3, $4, '{f}')",
                (workspace, self.endpoint, json.dumps([unshowable(post)]), [uuid4().hex]),
            ),
            "find_channels": Call(
                "SELECT find_channels($1, $2, '{news}')", (workspace, [str(self.channels[0]), "no such title"])
            ),
            "routing_facts": Call("SELECT * FROM routing_facts($1)", (workspace,)),
            "preview_post": Call(
                "SELECT preview_post($1, $2, $3, $4)", (workspace, self.endpoint, json.dumps(post), tag)
            ),
            "take_uploads": Call(
                "SELECT * FROM take_uploads($1, $2, $3, 'telegram', 'bot', $4, $5)",
                (workspace, one["delivery_id"], one["claim_token"], BLOBS, kinds),
            ),
            "keep_uploads": Call(
                "SELECT keep_uploads($1, 'telegram', 'bot', $2, $3, $2, $4)",
                (workspace, BLOBS, kinds, [None] * len(BLOBS)),
            ),
            "end_upload": Call("SELECT end_upload($1, $2)", (workspace, self.channels[0])),
            "give_back_claims": Call(
                "SELECT give_back_claims($1, $2, '{}', '1 hour')", (workspace, self.tenant.run_id)
            ),
            "lease_staged_posts": Call("SELECT * FROM lease_staged_posts(10, 4, '1 minute')", ()),
            "find_post": Call("SELECT * FROM find_post($1, $2)", (workspace, str(self.staged[1]))),
            "find_post by trace": Call("SELECT * FROM find_post($1, $2)", (workspace, "0123456789abcdef" * 2)),
            "read_post": Call("SELECT read_post($1, $2, $3, NULL, 100)", (workspace, uuid4(), one["message_id"])),
            "list_posts": Call("SELECT list_posts($1, NULL, NULL, NULL, NULL, 50)", (workspace,)),
            "list_posts of a source_ref": Call("SELECT list_posts($1, NULL, NULL, $2, NULL, 50)", (workspace, tag)),
            "cancel_post": Call(
                "SELECT cancel_post($1, NULL, $2, NULL, $3)",
                (workspace, one["message_id"], json.dumps({"operator": "a"})),
            ),
            "reschedule_post": Call(
                "SELECT reschedule_post($1, NULL, $2, NULL, NULL, $3)",
                (workspace, one["message_id"], json.dumps({"operator": "a"})),
            ),
            "replace_post": Call(
                "SELECT replace_post($1, $2, NULL, $3, NULL, $4, $5, '{}')",
                (workspace, self.endpoint, one["message_id"], json.dumps(post | {"run_id": str(uuid4())}), uuid4().hex),
            ),
            "renew_staged_post": Call("SELECT renew_staged_post($1, $2, $3, '1 minute')", self.staged),
            "release_staged_post": Call("SELECT release_staged_post($1, $2, $3)", self.staged),
            "finish_staged_post": Call("SELECT finish_staged_post($1, $2, $3, $4)", (*self.staged, json.dumps(post))),
            "fail_staged_post": Call("SELECT fail_staged_post($1, $2, $3, '{}', 5)", self.staged),
            "recover_staged_posts": Call("SELECT recover_staged_posts('1 minute', 5, 100)", ()),
            "take_media_fetch": Call("SELECT * FROM take_media_fetch($1, $2, $3, $4)", fetch),
            "note_media_put": Call("SELECT note_media_put($1, $2, $3, 'sha256:one')", (fetch[0], fetch[3], fetch[2])),
            "finish_media_fetch": Call(
                "SELECT finish_media_fetch($1, $2, $3, 'sha256:one', 's3://b/k', 'one', 'image/png', 1, 1, 1, 'a')",
                (fetch[0], fetch[3], fetch[2]),
            ),
            "read_media_origins": Call("SELECT * FROM read_media_origins($1, $2)", (workspace, BLOBS)),
            **self._of_chats(),
            **self._of_outages(one),
            **{name: Call(*given) for name, given in self.conversations.calls().items()},
            **{name: Call(*given) for name, given in self.publications.calls().items()},
            "fail_push": Call("SELECT fail_push($1, $2, 'trace', 'boom')", (workspace, self.endpoint)),
            "refuse_ingress": Call(
                "SELECT refuse_ingress($1, $2, 'push', 'ingress_rate_limited', 'rate_limited', '{}', 'trace')",
                (workspace, self.endpoint),
            ),
            "finish_pull": Call("SELECT finish_pull($1, 'feed', $2, 'ok')", (workspace, self.pull_token)),
            "forget_uploads": Call("SELECT forget_uploads($1, 'telegram', 'bot', $2, $2)", (workspace, BLOBS)),
            "read_credentials": Call("SELECT * FROM read_credentials($1, 'telegram', '{bot}')", (workspace,)),
            "learn_bot": Call("SELECT learn_bot($1, 'telegram', 'bot', now(), '17')", (workspace,)),
            "set_aside": Call("SELECT set_aside($1, 'claim', 1, '1 second', 'Error')", (workspace,)),
            "resolve_endpoint": Call("SELECT * FROM resolve_endpoint('webhook_push', $1)", (uuid4().hex * 2,)),
            "read_signing_secrets": Call("SELECT * FROM read_signing_secrets($1)", (self.endpoint,)),
            "store_bot_update": Call(
                "SELECT store_bot_update($1, $2, $3)",
                (workspace, self.endpoint, json.dumps(update | {"key": uuid4().hex})),
            ),
            "flush_refusals": Call("SELECT flush_refusals()", ()),
            "claim_pull_sources": Call("SELECT * FROM claim_pull_sources(10, '1 minute')", ()),
            "enqueue": Call(
                "SELECT enqueue_messages_and_deliveries($1, NULL, 'push', $2)", (workspace, json.dumps(post))
            ),
            "ingest_pull_chunk": Call(
                "SELECT ingest_pull_chunk($1, 'feed', $2, $3, $4, '[]', '{}', true, '1 minute')",
                (workspace, self.pull_endpoint, self.pull_token, pulled),
            ),
            "unseen_pull_items": Call("SELECT unseen_pull_items($1, 'feed', $2)", (workspace, [uuid4().hex])),
            "next_audit_events": Call("SELECT * FROM next_audit_events($1, $2)", (self.relay.holder, BATCH)),
            "relay_lag": Call("SELECT * FROM relay_lag()", ()),
            "retain_deliveries": Call("SELECT retain_deliveries('1 hour', '{}', 50)", ()),
            "retain_messages": Call("SELECT retain_messages('1 hour', '{}', 50)", ()),
            "retain_receipts": Call("SELECT retain_receipts(50)", ()),
            "retain_ingest_runs": Call("SELECT retain_ingest_runs('1 hour', 50)", ()),
            "retain_ingest_runs, none is old": Call("SELECT retain_ingest_runs('10 days', 50)", ()),
            "retain_deliveries, none is old": Call("SELECT retain_deliveries('10 days', '{}', 50)", ()),
            "retain_messages, none is old": Call("SELECT retain_messages('10 days', '{}', 50)", ()),
            "retain_staged_posts": Call("SELECT retain_staged_posts('1 hour', 50)", ()),
            "retain_media_fetches": Call("SELECT retain_media_fetches('1 hour', 50)", ()),
            "retain_bot_inbox": Call("SELECT retain_bot_inbox('1 hour', 50)", ()),
            "retain_pull_receipts": Call("SELECT retain_pull_receipts('1 hour', 50)", ()),
        }

    def _of_chats(self) -> dict[str, Call]:
        """In a chat with a long history, of which a little is new."""
        workspace, acting = self.tenant.workspace, (self.tenant.workspace, self.actions)
        change = {"call": "start", "chat_id": "busy", "action_id": "action 1", "action_type": "summarize"}
        started, ended = (json.dumps([change | fields]) for fields in ({}, {"call": "update", "status": "done"}))
        return {
            "change_actions, a start": Call("SELECT change_actions($1, $2, $3)", (*acting, started)),
            "change_actions, an update": Call("SELECT change_actions($1, $2, $3)", (*acting, ended)),
            "list_actions": Call("SELECT * FROM list_actions($1, 'busy', 200)", (workspace,)),
            "chat_changes": Call("SELECT * FROM chat_changes($1, 'busy', $2, 50)", (workspace, HEAD - 3)),
            "chat_changes, far behind": Call("SELECT * FROM chat_changes($1, 'busy', 0, 50)", (workspace,)),
            "chat_messages": Call("SELECT * FROM chat_messages($1, 'busy', NULL, NULL, 50)", (workspace,)),
            "chat_heads": Call("SELECT chat_heads($1, '{busy}')", ([workspace],)),
            "chat_ticket_key": Call("SELECT * FROM chat_ticket_key($1)", (self.actions,)),
            "expire_bot_actions": Call("SELECT * FROM expire_bot_actions($1, '-1 hour', 50)", (workspace,)),
            "expire_bot_actions, none is old": Call("SELECT * FROM expire_bot_actions($1, '1 hour', 50)", (workspace,)),
            "retain_bot_actions": Call("SELECT retain_bot_actions('1 hour', 50)", ()),
            "retain_bot_actions, none is old": Call("SELECT retain_bot_actions('10 days', 50)", ()),
            "retain_bot_chats": Call("SELECT retain_bot_chats('1 hour', 50)", ()),
            "retain_bot_chats, none is old": Call("SELECT retain_bot_chats('10 days', 50)", ()),
            "take_webhook_checks": Call("SELECT * FROM take_webhook_checks('1 hour', 20)", ()),
            "note_webhooks": Call("SELECT note_webhooks($1, '[]')", (workspace,)),
        }

    def _of_outages(self, claim: dict[str, Any]) -> dict[str, Call]:
        workspace, group = self.tenant.workspace, claim["rate_group"]
        return {
            "stall_groups": Call("SELECT stall_groups($1, '{telegram}', $2, '1 second')", ([workspace], [group])),
            "take_probes": Call("SELECT probes_of()", ()),
            "record_probe": Call("SELECT record_probe($1, 'telegram', $2, now(), true)", (workspace, group)),
            "claim_trial": Call("SELECT trials_of($1, $2)", (workspace, group)),
        }

    async def reports(self) -> dict[str, Call]:
        """Calls that count what is live."""
        workspace = self.tenant.workspace
        return {
            "snapshot": Call("SELECT snapshot($1)", (workspace,)),
            "status_report": Call("SELECT status_report()", ()),
            "stuck_staged_posts": Call("SELECT * FROM stuck_staged_posts('1 minute')", ()),
            "count_bot_actions": Call("SELECT * FROM count_bot_actions()", ()),
            "bot_counts": Call("SELECT * FROM bot_counts()", ()),
            "circuit_counts": Call("SELECT * FROM circuit_counts()", ()),
            "queue_by_workspace": Call("SELECT * FROM queue_by_workspace(10)", ()),
            "count_publications": Call("SELECT * FROM count_publications()", ()),
            "count_unpublished_commands": Call("SELECT count_unpublished_commands()", ()),
            "drop_missed_publications": Call("SELECT drop_missed_publications(200)", ()),
            "stuck_bot_replies": Call("SELECT * FROM stuck_bot_replies('1 minute')", ()),
            "queue_depth": Call("SELECT * FROM queue_depth()", ()),
            "recount": Call("SELECT * FROM recount($1)", (workspace,)),
            "evaluate_alerts": Call(f"SELECT * FROM evaluate_alerts(({ALL_CONDITIONS}))", ()),
        }

    async def read_by_reports(self, connection: Any) -> dict[str, int]:
        return {name: await _touched(connection, call) for name, call in (await self.reports()).items()}

    async def touched(self, connection: Any) -> dict[str, int]:
        """Buffers of each call, in the better of two rounds: the first one reads the catalog and makes plans."""
        await connection.execute("UPDATE leader_leases SET lease_until = clock_timestamp() + interval '1 hour'")
        rounds = [
            {name: await _touched(connection, call) for name, call in (await self.calls()).items()} for _ in range(2)
        ]
        return {name: min(one[name] for one in rounds) for name in rounds[0]}


async def _run(tenant: Tenant) -> UUID:
    run = uuid4()
    await tenant.db.execute(
        "INSERT INTO ingest_runs (workspace_id, run_id, kind) VALUES ($1, $2, 'pull')", tenant.workspace, run
    )
    return run


async def _touched(connection: Any, call: Call) -> int:
    """In a transaction that is rolled back."""
    transaction = connection.transaction()
    await transaction.start()
    explain = f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {call.query}"
    [explained] = json.loads(await connection.fetchval(explain, *call.arguments, timeout=120))
    await transaction.rollback()
    plan = explained["Plan"]
    return int(plan["Shared Hit Blocks"]) + int(plan["Shared Read Blocks"])
