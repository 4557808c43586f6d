"""Targets come from the configuration: whole, or refused with the name of what is missing; no secret is shown."""

import pytest
from autopost_monitor.alerts.condition_texts import thresholds
from autopost_monitor.config import MonitorConfig
from autopost_runtime.config.load import ConfigError, describe, load

CANARY = "canary-canary-canary"
BASE = {"AUTOPOST_DATABASE_URL": "postgresql://localhost/autopost"}


def read(**given: str) -> MonitorConfig:
    return load(MonitorConfig, BASE | {f"AUTOPOST_ALERT_{name.upper()}": value for name, value in given.items()})


def test_the_defaults_are_those_of_the_documents() -> None:
    config = read()

    assert (config.alert_dead, config.alert_failed_permanent, config.alert_paused_channels) == (1, 20, 10)
    assert config.alert_partitions_ahead is not None
    assert config.alert_partitions_ahead.days == 14
    assert config.snapshot_policy == "off"


@pytest.mark.parametrize(
    ("variable", "text", "condition", "threshold"),
    [
        ("dead_threshold", "7", "dead", 7),
        ("failed_perm_10m", "7", "failed_permanent", 7),
        ("paused_channels", "7", "paused_channels", 7),
        ("paused_share", "0.7", "paused_share", 0.7),
        ("disabled_channels", "7", "disabled_channels", 7),
        ("held", "7", "held_deliveries", 7),
        ("cooled_groups", "7", "cooled_groups", 7),
        ("open_circuits", "7", "open_circuits", 7),
        ("oldest_due", "7m", "oldest_due", 420),
        ("pull_failures", "7", "pull_sources", 7),
        ("staged_age", "7m", "staged_posts", 420),
        ("bot_age", "7m", "bot_outbox", 420),
        ("bot_errors", "7", "bot_errors", 7),
        ("bot_actions_expired", "7", "bot_actions_expired", 7),
        ("bot_inbox", "7m", "bot_inbox", 420),
        ("bot_fallback", "0.7", "bot_fallback", 0.7),
        ("bot_adapter", "7", "bot_adapter", 7),
        ("bot_webhook", "7m", "bot_webhook", 420),
        ("publications_failed", "7", "publications_failed", 7),
        ("publications_paused", "7", "publications_paused", 7),
        ("publications_late", "7m", "publications_late", 420),
        ("set_aside", "7", "set_aside", 7),
        ("provider_wait", "7m", "provider_waits", 420),
        ("orphan_events", "7", "orphan_events", 7),
        ("relay_lag", "7m", "relay_lag", 420),
        ("refused_claims", "7m", "refused_claims", 420),
        ("partitions_ahead", "7d", "event_partitions", 604800),
    ],
)
def test_a_variable_is_the_threshold_of_its_condition_alone(
    variable: str, text: str, condition: str, threshold: float
) -> None:
    assert thresholds(read(**{variable: text})) == thresholds(read()) | {condition: threshold}


def test_a_threshold_set_to_nothing_is_off() -> None:
    assert read(dead="").alert_dead is None


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"telegram_token": CANARY}, "AUTOPOST_ALERT_TELEGRAM_CHAT"),
        ({"telegram_chat": "-100"}, "AUTOPOST_ALERT_TELEGRAM_TOKEN"),
        ({"smtp_host": "mail"}, "AUTOPOST_ALERT_SMTP_FROM"),
        ({"smtp_host": "mail", "smtp_from": "a@b"}, "AUTOPOST_ALERT_SMTP_TO"),
        (
            {"smtp_host": "mail", "smtp_from": "a@b", "smtp_to": "c@d", "smtp_user": "u"},
            "AUTOPOST_ALERT_SMTP_PASSWORD",
        ),
        (
            {"smtp_host": "m", "smtp_from": "a@b", "smtp_to": "c@d", "smtp_user": "u"}
            | {"smtp_password": CANARY, "smtp_tls": "off"},
            "AUTOPOST_ALERT_SMTP_TLS",
        ),
        ({"webhook_url": f"ftp://host/{CANARY}"}, "AUTOPOST_ALERT_WEBHOOK_URL"),
        ({"webhook_url": f"https://hooks..example.org/{CANARY}"}, "AUTOPOST_ALERT_WEBHOOK_URL"),
        ({"smtp_host": "smtp..example.org", "smtp_from": "a@b", "smtp_to": "c@d"}, "AUTOPOST_ALERT_SMTP_HOST"),
        ({"smtp_host": "mail example", "smtp_from": "a@b", "smtp_to": "c@d"}, "AUTOPOST_ALERT_SMTP_HOST"),
        ({"webhook_url": "https://host/x", "webhook_secret": CANARY}, "AUTOPOST_ALERT_WEBHOOK_SECRET"),
        ({"dead": "0"}, "AUTOPOST_ALERT_DEAD"),
    ],
)
def test_half_a_target_is_refused_by_the_name_of_what_is_wrong(given: dict[str, str], named: str) -> None:
    with pytest.raises(ConfigError) as refused:
        read(**given)

    assert any(problem.startswith(named) for problem in refused.value.problems)
    assert CANARY not in str(refused.value)


def test_no_secret_of_a_target_is_shown() -> None:
    config = read(
        telegram_token=CANARY,
        telegram_chat="-100",
        webhook_url=f"https://hooks.example/{CANARY}",
        webhook_secret="whsec_" + "Y2FuYXJ5" * 5,
        smtp_host="mail",
        smtp_from="a@b",
        smtp_to="c@d",
        smtp_user="u",
        smtp_password=CANARY,
    )

    shown = repr(config) + str(describe(config))
    assert CANARY not in shown
    assert "Y2FuYXJ5" not in shown
