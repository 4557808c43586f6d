"""Each invariant is seen red: a bug is planted into a function, and some history finds it.

The histories only with ``AUTOPOST_FULL=1``: they test the tests. ``-rP`` prints how many it took.
"""

import os
from pathlib import Path

import pytest
from db.model.runner import run_all
from db.model.steps import install

FUNCTIONS = Path(__file__).parents[2] / "db" / "functions"
ENOUGH = 600
BUGS = {
    "max_parallel": [("choose_deliveries", "least(c.max_parallel -", "least(c.max_parallel + 1 -")],
    "channel slots": [("choose_deliveries", "max(s.slot_at) + s.step AS", "max(s.slot_at) + s.step / 2 AS")],
    "channel slots of later calls": [("take_slot", "_slot + _step", "_slot")],
    "group slots": [("choose_deliveries", "group_base + count(*) * group_step", "group_base + group_step / 2")],
    "group slots of later calls": [("take_slot", "_slot + _group_step", "_slot")],
    "slots of a group, for a channel that opens later": [
        ("take_slot", "AND (_gate IS NULL OR _gate <= greatest(_now, _group_gate)", "AND (true")
    ],
    "fence of a slot": [("take_slot", "AND d.claim_token = p_claim_token", "")],
    "burst after idling": [("slot_gate", "greatest(p_next_allowed_at, p_now - p_tolerance)", "p_next_allowed_at")],
    "one claim ends once": [("hold_claims", "ON o.time = 1", "ON true")],
    "fence of a commit": [("hold_claims", "AND d.claim_token = o.claim_token", "")],
    "fence of the short way": [("commit_sent", "AND d.claim_token = f.claim_token", "")],
    "streak on the short way": [("commit_sent", "AND NOT _has_streak", "")],
    "fence of a lease": [("renew_leases", "AND d.claim_token = w.claim_token", "")],
    "fence of progress": [("record_progress", "AND d.claim_token = p_claim_token", "")],
    "commit against recovery": [("hold_claims", "            FOR NO KEY UPDATE\n", "")],
    "in-flight guard": [
        ("enqueue_seen_posts", "'queued', 'claimed', 'sending', 'retry'", "'queued', 'claimed', 'sending'")
    ],
    "dedup window": [("enqueue_seen_posts", "coalesce(r.dedup_ttl_hours, 168)", "0")],
    "requeue beside a twin": [("judge_requeue", "WHEN twin.status IS NOT NULL THEN 'twin_in_flight'", "")],
    "attempts": [("claim_deliveries", "attempt = d.attempt + 1", "attempt = d.attempt")],
    "transitions": [
        ("is_legal_transition", "SELECT CASE p_from", "SELECT p_from IS NOT NULL OR CASE p_from"),
        ("recover_sending_leases", "THEN 'dead'\n                   ELSE 'retry'", "THEN 'dead'\n ELSE 'queued'"),
    ],
    "lost: lease": [("recover_sending_leases", "'-infinity') < _now\n", "'-infinity') < _now - interval '1 hour'\n")],
    "lost: queue row": [
        (
            "delivery_born",
            "USING (workspace_id, channel_id);\n",
            "USING (workspace_id, channel_id) WHERE n.due <= _now;\n",
        )
    ],
    "lost: due time of a birth": [("delivery_born", "d.next_due_at > _all.due", "d.next_due_at < _all.due")],
    "lost: due time": [("make_channels_due", "AND NOT d.waits_for_place", "AND d.waits_for_place")],
    "lost: place": [("wake_channels", "d.waits_for_place AND NOT w.freed", "d.waits_for_place")],
    "closed while it is fed": [("settle_channels", "WHEN NOT p.channel_id = ANY (_closable) THEN", "WHEN false THEN")],
    "lost: low water": [("delivery_moved", "greatest(n.created_at, c.low_water)", "n.created_at")],
    "swept while it is fed": [
        ("settle_channels", "WHEN p.channel_id = ANY (_closable) AND was.swept_at", "WHEN was.swept_at")
    ],
    "counters": [
        ("delivery_moved", "sum(n) FILTER (WHERE was = 'sending')", "sum(n) FILTER (WHERE was = 'sending') / 2")
    ],
    "running lease": [("recover_sending_leases", "< _now\n", "< _now + interval '10 minutes'\n")],
    "before its time": [("wake_sleepers", "s.sort_at <= p_now", "s.sort_at <= p_now + interval '1 minute'")],
    "pause": [("channel_opens_at", "ELSE greatest(p_channel.paused_until, p_at)", "ELSE p_at")],
    "catch-up after a pause": [
        ("claim_deliveries", "AND c.catch_up ->> 'policy' <> 'all'\n", "AND false\n"),
        ("ready_channels", "AND (c.paused_until <= p_now AND c.enabled AND", "AND (false AND"),
    ],
    "switch-off": [("channel_opens_at", "WHEN NOT p_channel.enabled THEN 'infinity'", "WHEN false THEN 'infinity'")],
    "cooldown of a group": [("commit_deliveries", "greatest(g.next_allowed_at, s.until)", "g.next_allowed_at")],
    "streak": [
        ("commit_deliveries", "error_streak = CASE WHEN e.arrived THEN 0 ELSE c.error_streak END", "error_streak = 0")
    ],
    "hold": [("commit_deliveries", "WHEN j.on_hold THEN 'infinity'", "")],
    "fold: retry time": [
        ("commit_deliveries", "'next_retry_at', nullif(t.retry_at, 'infinity')", "'next_retry_at', _now")
    ],
    "fold: event left out": [
        (
            "recover_sending_leases",
            "SELECT 2, 'dead_letter' WHERE s.new_status = 'dead'",
            "SELECT 2, 'dead_letter' WHERE false",
        )
    ],
    "fold: provider id": [("commit_deliveries", "'provider_message_id', t.provider_message_id, 'parts'", "'parts'")],
    "progress": [("record_progress", "|| to_jsonb(p_part)", "")],
}


@pytest.mark.parametrize("bug", BUGS)
def test_a_bug_can_be_planted_where_it_was(bug):
    """Or a function has changed, and the bug must be planted anew."""
    for function, right, _ in BUGS[bug]:
        assert right in (FUNCTIONS / f"{function}.sql").read_text()


@pytest.mark.skipif(not os.environ.get("AUTOPOST_FULL"), reason="tests the tests: AUTOPOST_FULL=1")
@pytest.mark.parametrize("bug", BUGS)
async def test_some_history_finds_a_planted_bug(database, bug):
    connection = await database.connect()
    await install(connection)
    texts = {function: (FUNCTIONS / f"{function}.sql").read_text() for function, _, _ in BUGS[bug]}
    for function, right, wrong in BUGS[bug]:
        texts[function] = texts[function].replace(right, wrong)
    for text in texts.values():
        await connection.execute(text)

    tally = await run_all(database.url, list(range(1, ENOUGH)), lanes=1, shrink=False)

    assert tally.failures, f"nobody noticed in {tally.histories} histories"
    _, violation = tally.failures[0]
    print(f"{bug}: {tally.histories} histories, by {violation.invariant!r}")  # noqa: T201 -- what it is run for
