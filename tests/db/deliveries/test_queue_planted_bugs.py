"""Each invariant is seen red: a bug is planted into a function, and some history finds it.

The histories only with ``AUTOPOST_FULL=1``: they test the tests. ``-rP`` prints how many it took.
"""

import pytest
from autopost_cli.schema import schema_files
from db.model.runner import run_all
from db.model.steps import install
from harness.full import FULL

pytestmark = pytest.mark.time_limit(480)

ENOUGH = 600
BUGS = {
    "max_parallel": [("assign_slots", "least(c.max_parallel -", "least(c.max_parallel + 1 -")],
    "channel slots": [("assign_slots", "max(s.slot_at + s.after) AS", "max(s.slot_at + s.after / 2) AS")],
    "channel slots of later calls": [("take_slots", "j.slot + j.step", "j.slot")],
    "group slots": [("assign_slots", "group_base + count(*) * group_step", "group_base + group_step / 2")],
    "group slots of later calls": [("take_slots", "j.slot + j.group_step", "j.slot")],
    "slots of a group, for a channel that opens later": [
        ("take_slots", "AND (a.gate IS NULL OR a.gate <= greatest(_now, a.group_gate)", "AND (true")
    ],
    "fence of a slot": [("take_slots", "AND d.claim_token = c.claim_token", "")],
    "burst after idling": [("slot_gate", "greatest(p_next_allowed_at, p_now - p_tolerance)", "p_next_allowed_at")],
    "one claim ends once": [("lock_claims", "ON o.time = 1", "ON true")],
    "fence of a commit": [("lock_claims", "AND d.claim_token = o.claim_token", "")],
    "fence of the short way": [("commit_sent", "AND d.claim_token = f.claim_token", "")],
    "streak on the short way": [("commit_sent", "AND NOT _has_streak", "")],
    "fence of a lease": [("renew_leases", "AND d.claim_token = w.claim_token", "")],
    "fence of progress": [("lock_claims", "AND d.claim_token = o.claim_token", "")],
    "commit against recovery": [("lock_claims", "            FOR NO KEY UPDATE\n", "")],
    "in-flight guard": [("is_twin", "'queued', 'claimed', 'sending', 'retry'", "'queued', 'claimed', 'sending'")],
    "dedup window": [("dedup_window", "coalesce(p_dedup_ttl_hours, 168)", "0")],
    "requeue beside a twin": [("check_requeue", "WHEN twin.status IS NOT NULL THEN 'twin_in_flight'", "")],
    "attempts": [("start_sending", "attempt = d.attempt + 1", "attempt = d.attempt")],
    "transitions": [
        ("is_legal_transition", "SELECT CASE p_from", "SELECT p_from IS NOT NULL OR CASE p_from"),
        ("recover_sending_leases", "THEN 'dead' ELSE 'retry' END", "THEN 'dead' ELSE 'queued' END"),
    ],
    "lost: lease": [("recover_sending_leases", "'-infinity') < _now\n", "'-infinity') < _now - interval '1 hour'\n")],
    "lost: queue row": [
        (
            "deliveries_after_insert",
            "USING (workspace_id, channel_id);\n",
            "USING (workspace_id, channel_id) WHERE n.due <= _now;\n",
        )
    ],
    "lost: due time of a new delivery": [("enqueue_posts", "AND a.enqueued > 0", "AND false")],
    "lost: due time": [("make_channels_due", "AND NOT d.waits_for_place", "AND d.waits_for_place")],
    "lost: place": [("wake_channels", "d.waits_for_place AND NOT w.freed", "d.waits_for_place")],
    "closed while it is fed": [("reschedule_channels", "WHEN NOT p.is_closable THEN", "WHEN false THEN")],
    "lost: low water": [("deliveries_after_update", "greatest(n.created_at, c.low_water)", "n.created_at")],
    "swept while it is fed": [("reschedule_channels", "WHEN p.is_closable AND was.swept_at", "WHEN was.swept_at")],
    "counters": [
        (
            "deliveries_after_update",
            "sum(n) FILTER (WHERE was = 'sending')",
            "sum(n) FILTER (WHERE was = 'sending') / 2",
        )
    ],
    "running lease": [("recover_sending_leases", "< _now\n", "< _now + interval '10 minutes'\n")],
    "before its time": [("wake_sleepers", "s.sort_at <= p_now", "s.sort_at <= p_now + interval '1 minute'")],
    "pause": [("channel_opens_at", "ELSE greatest(p_channel.paused_until, p_at)", "ELSE p_at")],
    "catch-up after a pause": [
        ("claim_deliveries", "AND c.catch_up ->> 'policy' <> 'all'\n", "AND false\n"),
        ("ready_channels", "AND (c.paused_until <= p_now AND c.enabled AND", "AND (false AND"),
    ],
    "switch-off": [("channel_opens_at", "WHEN NOT p_channel.enabled THEN 'infinity'", "WHEN false THEN 'infinity'")],
    "cooldown of a group": [("cool_groups", "greatest(g.next_allowed_at, w.until)", "g.next_allowed_at")],
    "streak": [
        ("penalise_channels", "error_streak = CASE WHEN e.has_sent THEN 0 ELSE c.error_streak END", "error_streak = 0")
    ],
    "hold": [("decide_outcomes", "WHEN r.on_hold THEN 'infinity'", "")],
    "fold: retry time": [
        ("apply_outcomes", "'next_retry_at', nullif(o.retry_at, 'infinity')", "'next_retry_at', p_now")
    ],
    "fold: event left out": [
        (
            "recover_sending_leases",
            "SELECT 2, 'dead_letter' WHERE m.status = 'dead'",
            "SELECT 2, 'dead_letter' WHERE false",
        )
    ],
    "fold: provider id": [("apply_outcomes", "'provider_message_id', o.provider_message_id, 'parts'", "'parts'")],
    "progress": [("record_progress_across", "|| to_jsonb(p.part)", "")],
}


@pytest.mark.parametrize("bug", BUGS)
def test_a_bug_can_be_planted_where_it_was(bug):
    """Or a function has changed, and the bug must be planted anew."""
    for function, right, _ in BUGS[bug]:
        assert right in schema_files.function(function).text


@pytest.mark.skipif(not FULL, reason="tests the tests: AUTOPOST_FULL=1")
@pytest.mark.parametrize("bug", BUGS)
async def test_some_history_finds_a_planted_bug(database, bug):
    connection = await database.connect()
    await install(connection)
    texts = {function: schema_files.function(function).text for function, _, _ in BUGS[bug]}
    for function, right, wrong in BUGS[bug]:
        texts[function] = texts[function].replace(right, wrong)
    for text in texts.values():
        await connection.execute(text)

    tally = await run_all(database.url, list(range(1, ENOUGH)), lanes=1, shrink=False)

    assert tally.failures, f"nobody noticed in {tally.histories} histories"
    _, violation = tally.failures[0]
    print(f"{bug}: {tally.histories} histories, by {violation.invariant!r}")  # noqa: T201 -- what it is run for
