"""What `make quick` leaves out, said here and nowhere else: by place, or by a test's own time limit."""

from collections.abc import Iterable

import pytest

from harness.time_limit import LONGEST

PLACES = (
    "tests/adapters/test_compile_properties.py",  # hundreds of examples
    "tests/adapters/test_conformance.py",
    "tests/adapters/test_markdown_as_commonmark.py",  # random documents
    "tests/adapters/test_markup_round_trips.py",
    "tests/adapters/test_problem_words.py",
    "tests/adapters/test_through_simulator.py",
    "tests/bench/measures/test_drained.py",
    "tests/bench/test_whole.py",
    "tests/bot/actions/test_calls.py",  # a service
    "tests/bot/conversation/",  # replicas that answer, and some that are killed
    "tests/bot/stream/",
    "tests/cli/",  # starts programs
    "tests/db/actions/",
    "tests/db/alerts/",
    "tests/db/bot/",
    "tests/db/circuit/",
    "tests/db/claim/test_claim_deliveries.py::test_of_channels_with_a_backlog",
    "tests/db/claim/test_races.py",
    "tests/db/conditions/",
    "tests/db/deliveries/test_planning.py",  # plans on full tables
    "tests/db/enqueue/test_enqueue_races.py",
    "tests/db/events/",
    "tests/db/media/",
    "tests/db/operate/",
    "tests/db/pull/",
    "tests/db/references/",
    "tests/db/relay/",
    "tests/db/replies/",
    "tests/db/retain/",
    "tests/db/staging/",
    "tests/db/status/",
    "tests/db/verify/",
    "tests/db/why/",
    "tests/dispatcher/circuit/test_outages.py",
    "tests/dispatcher/claim/test_isolation.py",
    "tests/dispatcher/claim/test_set_aside.py",
    "tests/dispatcher/send/test_raw_answers.py",
    "tests/dispatcher/send/test_with_simulators.py",
    "tests/docs/test_readme.py",  # starts everything
    "tests/e2e/",
    "tests/harness/test_time_limit.py",
    "tests/ingest/admission/test_admit_refusals.py",
    "tests/ingest/admission/test_admit_signatures.py",
    "tests/ingest/admission/test_refusal_samples.py",
    "tests/ingest/admission/test_sample_budget.py",
    "tests/ingest/dry_run/",
    "tests/ingest/http/test_bot_webhook.py",
    "tests/ingest/http/test_examples.py",
    "tests/ingest/http/test_log_away.py",
    "tests/ingest/http/test_openapi.py",
    "tests/ingest/http/test_receive_",
    "tests/ingest/http/test_workspace_hints.py",
    "tests/ingest/posts/test_complexity.py",  # CPU time of growing inputs
    "tests/ingest/posts/test_first_seen_tags.py",
    "tests/ingest/posts/test_offload.py",
    "tests/ingest/pull/",  # a service, its sites and a process for each reader
    "tests/ingest/staging/",
    "tests/monitor/alerts/",
    "tests/monitor/leader/",
    "tests/monitor/relay/",
    "tests/monitor/retention/",
    "tests/monitor/status/",
    "tests/requirements/",
    "tests/runtime/fetch/test_dns.py",
    "tests/runtime/http/test_web.py::test_a_refused_request_is_held",
    "tests/runtime/lifecycle/test_health_limits.py",
    "tests/runtime/lifecycle/test_pace.py",
    "tests/runtime/lifecycle/test_readiness.py",
    "tests/runtime/lifecycle/test_service_life.py",
    "tests/runtime/nats/",
    "tests/runtime/postgres/test_postgres_pool.py",
    "tests/runtime/postgres/test_schema.py",
    "tests/runtime/storage/",
    "tests/runtime/telemetry/test_logs_away.py",
    "tests/runtime/workers/",  # processes
    "tests/simulator/test_max_client_",  # other people's programs
    "tests/simulator/test_max_webhooks.py",
    "tests/simulator/test_page.py",  # a browser
    "tests/simulator/test_simulator_command.py",
    "tests/simulator/test_simulator_stream.py",
    "tests/simulator/test_telegram_client",  # other people's programs
    "tests/tools/test_shape.py",  # reads the whole tree
)
"""How the names of tests begin: whole programs and services, and what the database does beside the path of a post."""


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "slow: what make quick leaves out (harness/slow.py)")


def mark(items: Iterable[pytest.Item]) -> None:
    for item in items:
        if is_slow(item):
            item.add_marker("slow")


def longest_first(items: list[pytest.Item]) -> None:
    """Else all but one worker would wait at the end for a test that takes minutes."""
    items.sort(key=lambda item: -max(_limit(item), LONGEST))


def is_slow(item: pytest.Item) -> bool:
    """A test that may take longer than others is slow as well."""
    return item.nodeid.startswith(PLACES) or _limit(item) > LONGEST


def _limit(item: pytest.Item) -> float:
    limit = item.get_closest_marker("time_limit")
    return float(limit.args[0]) if limit else 0.0
