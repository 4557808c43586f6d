"""What nothing reads is warned about; every default is what it is documented to be."""

from datetime import timedelta

import msgspec
import pytest
from autopost_bot.config import BotConfig
from autopost_cli.stack.settings import UpSettings
from autopost_dispatcher.config import DispatcherConfig
from autopost_ingest.config import IngestConfig
from autopost_monitor.config import MonitorConfig
from autopost_runtime.config.known_variables import CONFIGS, PREFIX, unknown
from autopost_runtime.config.load import ConfigError, ServiceConfig, describe, load, variables

KINDS = (IngestConfig, DispatcherConfig, MonitorConfig, BotConfig, UpSettings)
MiB = 1024 * 1024
NEEDED = {"AUTOPOST_DATABASE_URL": "postgresql://nobody@nowhere/none"}


def test_the_list_of_names_is_what_the_configs_read() -> None:
    read = set().union(*(variables(kind) for kind in KINDS))

    assert {PREFIX + name for name in CONFIGS} == read


def test_a_misspelt_variable_is_named_with_the_nearest_that_is_known() -> None:
    assert unknown({"AUTOPOST_MAX_ATEMPTS": "3"}) == {"AUTOPOST_MAX_ATEMPTS": "AUTOPOST_MAX_ATTEMPTS"}
    assert unknown({"AUTOPOST_QQ": "1"}) == {"AUTOPOST_QQ": None}


def test_known_names_files_and_names_of_others_are_passed_over() -> None:
    env = {"AUTOPOST_POLL_INTERVAL": "1s", "AUTOPOST_S3_SECRET_KEY_FILE": "/x", "AUTOPOST_SECRETS_KEY_OLD_FILE": "/y"}
    env["AUTOPOST_TEST_STATISTICS"] = "empty"

    assert unknown({**env, "PATH": "/bin"}) == {}


@pytest.mark.parametrize(
    ("kind", "variable", "default", "text", "given"),
    [
        (IngestConfig, "PULL_CHUNK_SIZE", 100, "7", 7),
        (IngestConfig, "MAX_MEDIA_BYTES_IMAGE", 10 * MiB, "1000", 1000),
        (IngestConfig, "MAX_MEDIA_BYTES_VIDEO", 50 * MiB, "1000", 1000),
        (IngestConfig, "DOWNLOAD_TIMEOUT_MS", timedelta(seconds=30), "1500", timedelta(seconds=1.5)),
        (DispatcherConfig, "DISPATCHER_LIMIT_PER_WORKSPACE", 1000, "10", 10),
        (DispatcherConfig, "MAX_ATTEMPTS", 5, "3", 3),
        (DispatcherConfig, "BACKOFF_BASE", timedelta(seconds=2), "4s", timedelta(seconds=4)),
        (DispatcherConfig, "BACKOFF_CAP", timedelta(minutes=10), "4m", timedelta(minutes=4)),
        (DispatcherConfig, "GROUP_COOLDOWN", timedelta(seconds=60), "5s", timedelta(seconds=5)),
        (DispatcherConfig, "PAUSE_ON_PERMANENT", timedelta(hours=1), "2h", timedelta(hours=2)),
        (DispatcherConfig, "DISABLE_AFTER_PERMANENT_STREAK", 3, "4", 4),
        (DispatcherConfig, "SENDING_LEASE", timedelta(seconds=300), "400s", timedelta(seconds=400)),
        (MonitorConfig, "ALERT_DEAD_THRESHOLD", 1, "3", 3),
        (MonitorConfig, "ALERT_FAILED_PERM_10M", 20, "3", 3),
        (MonitorConfig, "ALERT_PAUSED_CHANNELS", 10, "3", 3),
        (MonitorConfig, "ORIGIN_RETENTION", timedelta(days=30), "3d", timedelta(days=3)),
        (MonitorConfig, "ORIGIN_RETENTION_LARGE_VIDEO", timedelta(days=7), "3d", timedelta(days=3)),
        (MonitorConfig, "LARGE_VIDEO_BYTES", 20 * MiB, "3", 3),
        (MonitorConfig, "SNAPSHOT_POLICY", "off", "schedule", "schedule"),
    ],
)
def test_a_documented_variable_has_its_default_and_is_read(
    kind: type[ServiceConfig], variable: str, default: object, text: str, given: object
) -> None:
    def value(env: dict[str, str]) -> object:
        config = load(kind, NEEDED | env)
        names = list(describe(config))
        return getattr(config, msgspec.structs.fields(kind)[names.index(PREFIX + variable)].name)

    assert (value({}), value({PREFIX + variable: text})) == (default, given)


def test_the_other_name_of_a_variable_works_too_but_not_both_at_once() -> None:
    assert load(IngestConfig, NEEDED | {"AUTOPOST_FETCH_TIMEOUT": "3s"}).fetch_timeout == timedelta(seconds=3)
    both = {"AUTOPOST_PULL_CHUNK": "3", "AUTOPOST_PULL_CHUNK_SIZE": "4"}

    with pytest.raises(ConfigError, match="AUTOPOST_PULL_CHUNK_SIZE and AUTOPOST_PULL_CHUNK are both set"):
        load(IngestConfig, NEEDED | both)


def test_a_timeout_is_shown_in_the_unit_of_its_name() -> None:
    assert describe(load(IngestConfig, NEEDED))["AUTOPOST_DOWNLOAD_TIMEOUT_MS"] == "30000"


def test_nonsense_under_the_documented_name_is_refused_by_that_name() -> None:
    with pytest.raises(ConfigError, match="AUTOPOST_DOWNLOAD_TIMEOUT_MS: expected a duration"):
        load(IngestConfig, NEEDED | {"AUTOPOST_DOWNLOAD_TIMEOUT_MS": "soon"})
