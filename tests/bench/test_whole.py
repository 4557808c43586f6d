"""The bench as a whole, so small that it measures nothing: every part runs, checks itself and reports."""

import subprocess
import sys

import msgspec
import pytest
from autopost_bench.command import bench
from autopost_bench.report.bars import BARS
from click.testing import CliRunner

pytestmark = pytest.mark.time_limit(480)

# In a process of its own: it sets up logs and telemetry as the dispatcher does.
SMALL = """
import sys
from datetime import timedelta
import msgspec, uvloop
from autopost_bench.command import run
from autopost_bench.counts import Counts

second = timedelta(seconds=1)
counts = Counts(
    seasoned_gb=0, repetitions=1, channels=(40, 60, 80), drained=240, enqueued=240, pgqueuer_jobs=200,
    procrastinate_jobs=20, anchor=second, backlog=600, long_backlog=4_000, history=400, blocked=200, sampled=200,
    watched=second, snapshot_drained=240, slot_repetitions=1, slot_period=6 * second, slot_stop=second, called=240,
    replicas_drained=240, latencies=5, posted=20, posted_to_one=70, idle_streams=60, busy_streams=30, fanned_out=2,
    started=130, bot_chats=2, bot_updates=1, idle_chats=300, published=3, drained_by_turns=240,
    due_at_once=12,
)
sys.stdout.buffer.write(msgspec.json.encode(uvloop.run(run((sys.argv[1],), counts))))
"""


def test_every_part_of_the_queue_runs_and_reports() -> None:
    ended = subprocess.run([sys.executable, "-c", SMALL, "queue"], capture_output=True, text=True, timeout=240)

    assert ended.returncode == 0, ended.stderr
    found = msgspec.json.decode(ended.stdout)
    assert [bar["name"] for bar in found["bars"]] == [bar.name for bar in BARS if bar.tag == "queue"]
    assert all(bar["value"] >= 0 for bar in found["bars"])
    settings = found["raw"]["settings"]
    assert [settings[name] for name in ("fsync", "synchronous_commit", "full_page_writes")] == ["on"] * 3


def test_every_part_of_the_stream_runs_and_reports() -> None:
    ended = subprocess.run([sys.executable, "-c", SMALL, "stream"], capture_output=True, text=True, timeout=120)

    assert ended.returncode == 0, ended.stderr
    found = msgspec.json.decode(ended.stdout)
    assert [bar["name"] for bar in found["bars"]] == [bar.name for bar in BARS if bar.tag == "stream"]
    assert all(bar["value"] > 0 for bar in found["bars"])
    assert found["raw"]["figures"]["stream.idle"]["values"] == [60]


def test_every_part_of_the_bot_runs_and_reports() -> None:
    ended = subprocess.run([sys.executable, "-c", SMALL, "bot"], capture_output=True, text=True, timeout=120)

    assert ended.returncode == 0, ended.stderr
    found = msgspec.json.decode(ended.stdout)
    assert [bar["name"] for bar in found["bars"]] == [bar.name for bar in BARS if bar.tag == "bot"]
    assert all(bar["value"] > 0 for bar in found["bars"])


def test_every_part_of_publications_runs_and_reports() -> None:
    ended = subprocess.run([sys.executable, "-c", SMALL, "publications"], capture_output=True, text=True, timeout=120)

    assert ended.returncode == 0, ended.stderr
    found = msgspec.json.decode(ended.stdout)
    assert [bar["name"] for bar in found["bars"]] == [bar.name for bar in BARS if bar.tag == "publications"]
    assert {bar["name"]: bar["value"] for bar in found["bars"]}["calls before their time"] == 0


def test_a_part_of_the_bench_does_not_overwrite_the_page() -> None:
    ended = CliRunner().invoke(bench, ["--only", "queue", "--write"])

    assert ended.exit_code == 2
    assert "--write needs a whole run" in ended.output
