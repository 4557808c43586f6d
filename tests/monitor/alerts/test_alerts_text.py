"""A notice in words that somebody on call can act on."""

from datetime import timedelta

from autopost_monitor.alerts.condition_texts import CONDITION_TEXTS, thresholds
from autopost_monitor.alerts.config import AlertConfig
from autopost_monitor.alerts.gateway import Cause
from autopost_monitor.alerts.text import notice_text
from monitor.support.alert_targets import AT, DELIVERY, WORKSPACE, configured, facts


def test_an_alert_says_what_how_many_since_when_why_and_where_to_look() -> None:
    words = notice_text(facts())

    assert words.subject == "autopost: demo: 3 dead deliveries not reviewed yet"
    assert words.body.splitlines() == [
        "Since 2026-11-16 12:20 UTC, for 10 min.",
        "• News: chat_not_found ×3",
        f"For details run: autopost queue errors --workspace {WORKSPACE}",
        f"                 autopost why {DELIVERY}",
    ]


def test_a_reminder_and_an_ending_say_that_they_are() -> None:
    assert notice_text(facts("reminder")).subject.startswith("autopost: demo: still open: 3 dead")
    over = notice_text(facts("recovered", recovered_at=AT + timedelta(hours=3)))
    assert over.subject.startswith("autopost: demo: resolved: 3 dead")
    assert over.body == "It started at 2026-11-16 12:21 UTC and lasted 3 h."


def test_the_installation_has_no_workspace_to_name() -> None:
    words = notice_text(facts(condition="relay_lag", workspace=None, workspace_id=None, causes=()))

    assert words.subject == "autopost: 3 events are not in the audit stream yet"
    assert "--workspace" not in words.body


def test_a_snapshot_tells_the_queue_and_its_errors() -> None:
    seen = {
        "counts": {"queued": 5, "dead": 1},
        "top_errors": [{"code": "timeout", "count": 4}, {"code": None, "count": 1}],
    }

    words = notice_text(facts("snapshot", snapshot=seen, causes=()))

    assert words.body.splitlines() == [
        "Queue: dead 1, queued 5",
        "Errors of the last ten minutes: timeout ×4, unknown ×1",
    ]


def test_what_others_wrote_is_one_line_without_secrets() -> None:
    name = "News\r\nBcc: everybody@example.org\x00 Bearer canary-canary 123456789:AAF0canary_canary-canary_canary0123"

    words = notice_text(facts(workspace=name, causes=(Cause(name=name, code=name),)))

    assert "canary" not in words.text
    assert "\r" not in words.text
    assert "\x00" not in words.text
    assert "\n" not in words.subject
    assert all(len(line) < 200 for line in words.text.splitlines())


def test_every_threshold_has_its_condition_and_its_words() -> None:
    assert set(thresholds(configured())) == {*CONDITION_TEXTS, "staged_deadline", "paused_share"}


def test_a_threshold_that_is_set_to_nothing_is_off() -> None:
    config = configured(alert_dead=None, alert_oldest_due=None)

    assert isinstance(config, AlertConfig)
    assert (thresholds(config)["dead"], thresholds(config)["oldest_due"]) == (None, None)
